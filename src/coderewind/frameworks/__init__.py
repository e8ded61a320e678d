"""Rewind inside agent frameworks: one module each, loaded with its framework and never before.

Every adapter gives two things in one object: the tools checkpoint and rewind, which prune what the
model is sent, and checkpoints of a workspace folder where a turn begins and ends.
"""
