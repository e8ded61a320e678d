"""Plain, frozen-by-habit types shared by every layer. No I/O here.

They are hand-written classes with __slots__: importing msgspec, dataclasses or typing costs
10-30 ms of start-up each (benchmarks/startup.py), and a hook pays that at every tool call.
"""
