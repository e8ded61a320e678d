"""Our own folders: where the home is, and that nobody else looks into them."""

from __future__ import annotations

import os

from coderewind.errors import RewindError


def rewind_home() -> bytes:
    """`$REWIND_HOME`, else ~/.rewind of the account, also when HOME is not set."""
    configured = os.environb.get(b"REWIND_HOME")
    if configured:
        return os.path.abspath(configured)
    return os.path.join(user_home(), b".rewind")


def user_home() -> bytes:
    home = os.environb.get(b"HOME")
    if home:
        return os.path.abspath(home)
    import pwd

    try:
        return os.fsencode(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        raise RewindError(
            "there is no home folder for this user", hint="set HOME or REWIND_HOME"
        ) from None


def make_private(path: bytes) -> None:
    """A folder for us alone; a symlink or somebody else's folder in its place is refused."""
    try:
        _make(path)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        _make(path)


def _make(path: bytes) -> None:
    try:
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)
    except FileExistsError:
        st = os.lstat(path)
        if (st.st_mode & 0o170000) == 0o120000 and os.path.isdir(path) and path == rewind_home():
            return  # the user may keep ~/.rewind elsewhere
        if (st.st_mode & 0o170000) != 0o040000 or st.st_uid != os.geteuid():
            raise RewindError(
                f"{os.fsdecode(path)} is not a folder of yours",
                hint="move it away; Rewind keeps its data only in folders that you own",
            ) from None
        if st.st_mode & 0o077:
            os.chmod(path, 0o700)
