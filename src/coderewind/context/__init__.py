"""Context rewind: an agent goes back to a checkpoint of its own conversation and keeps a report.

    from coderewind.context import SessionTree

Nothing here knows an agent or a framework, nor how files are captured.
"""

from coderewind.context.tree import SessionTree as SessionTree

__all__ = ["SessionTree"]
