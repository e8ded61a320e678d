"""Boxes for tests that drive Rewind inside this process.

`sealed_box` gives a `corpus.box.Box` and makes its environment this process's own, so that
nothing of the developer's HOME, configuration, locale or temporary folder is seen or touched.
"""

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from unittest import mock

from corpus.box import Box

from coderewind import Rewind

# A fixed moment for the user's own commits, so that their ids are the same in every run.
MOMENT = "2024-05-06T07:08:09+00:00"
_opened: list[Rewind] = []


@contextlib.contextmanager
def sealed_box(
    *, git: bool = False, project: str | bytes = "project", within: str | None = None
) -> Iterator[Box]:
    """A box whose environment is in force; at the end nothing may be left in TMPDIR."""
    room = os.path.realpath(tempfile.mkdtemp(prefix="sealed-", dir=within))
    box = Box(room, project)
    box.env |= {"TZ": "UTC", "GIT_AUTHOR_DATE": MOMENT, "GIT_COMMITTER_DATE": MOMENT}
    umask = os.umask(0o022)
    before = tempfile.tempdir
    try:
        with mock.patch.dict(os.environ, box.env, clear=True):
            tempfile.tempdir = None
            time.tzset()
            if git:
                box.init()
            yield box
            close_all()
            assert os.listdir(box.tmp) == [], "litter in TMPDIR"
    finally:
        tempfile.tempdir = before
        os.umask(umask)
        time.tzset()
        # rm copes with unreadable folders, where shutil does not.
        subprocess.run(["chmod", "-R", "u+rwx", room], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["rm", "-rf", room], check=False)


def opened(box: Box) -> Rewind:
    """Rewind on the box's project, as a process that starts now would have it."""
    rewind = Rewind.open(box.project)
    _opened.append(rewind)
    return rewind


def close_all() -> None:
    """Close all that `opened` opened, as the end of those processes would."""
    while _opened:
        _opened.pop().close()
