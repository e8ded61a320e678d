"""Rewind: the time machine for coding agents.

The public Python API:

    from coderewind import Rewind

    rewind = Rewind.open("path/to/project")
    before = rewind.checkpoint("before the refactoring")
    ...
    plan = rewind.plan(before)          # what would change, inspectable
    rewind.restore(before)              # files exactly as they were
    rewind.undo_restore()               # and back again

Importing this package costs nothing: the API is loaded when it is first used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.api import Rewind as Rewind
    from coderewind.errors import RewindError as RewindError

__version__ = "0.1.0"
__all__ = ["Rewind", "RewindError", "__version__"]


def __getattr__(name: str) -> object:
    if name == "Rewind":
        from coderewind.api import Rewind

        return Rewind
    if name == "RewindError":
        from coderewind.errors import RewindError

        return RewindError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
