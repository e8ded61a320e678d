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
    except FileNotFoundError:
        make_folders(os.path.dirname(path))
        make_private(path)


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
    """A folder of ours with all that is in it; what cannot be removed stays."""
    folders = [top]
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        os.unlink(entry.path)
        except OSError:
            continue
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            continue
