"""Faults: killed, failing, out of space and without power, at every system call."""
