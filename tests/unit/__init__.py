"""Tests of the parts that need no git and start no process."""
