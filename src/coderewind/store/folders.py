"""Our own folders: where the home is, and that nobody else looks into them."""

from __future__ import annotations

import os
from stat import S_ISDIR

from coderewind.errors import RewindError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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


def make_folders(path: bytes) -> None:
    """A folder and those above it, however many; recursion would end at a thousand."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:  # another process was faster, if it is a folder
            if not os.path.isdir(folder):
                raise


def remove_folder(top: bytes) -> None:
    """A folder of ours with all that is in it; what cannot be removed stays.

    Every folder below is first moved to the top: so none is too deep, and with each opened by
    its descriptor no link that flips under us leads elsewhere.
    """
    try:
        fd = os.open(top, _FOLDER)
    except OSError:
        return
    lifted = [b"."]
    try:
        for name in lifted:
            try:
                _empty(fd, name, lifted)
                os.rmdir(name, dir_fd=fd)
            except OSError:
                continue  # and "." cannot be removed by that name
    finally:
        os.close(fd)
    try:
        os.rmdir(top)
    except OSError:
        pass


def _empty(top: int, name: bytes, lifted: list[bytes]) -> None:
    folder = os.open(name, _FOLDER, dir_fd=top)
    try:
        for entry in map(os.fsencode, os.listdir(folder)):
            try:
                if S_ISDIR(os.lstat(entry, dir_fd=folder).st_mode):
                    new = b".lifted-%d" % len(lifted)
                    os.rename(entry, new, src_dir_fd=folder, dst_dir_fd=top)
                    lifted.append(new)
                else:
                    os.unlink(entry, dir_fd=folder)
            except OSError:
                continue
    finally:
        os.close(folder)
