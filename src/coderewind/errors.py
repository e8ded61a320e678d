"""The one error a user sees.

Anything else that reaches the top of a surface is a bug, and is reported as one.
"""


class RewindError(Exception):
    """Something the user can act on: what is wrong, what to do about it, and the exit code."""

    def __init__(self, message: str, *, hint: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code
