"""Contents come back byte for byte, whatever the user told git to do with them."""

import os
import sys
from pathlib import Path

import pytest

from .box import Box

CONTENTS = {
    "lf": b"one\ntwo\n",
    "crlf": b"one\r\ntwo\r\n",
    "mixed": b"one\r\ntwo\nthree\r",
    "cr": b"one\rtwo\r",
    "no-newline": b"one",
    "empty": b"",
    "nul": b"a\0b\0\r\n",
    "bom": b"\xef\xbb\xbfone\r\n",
    "utf16": "one\r\ntwo\n".encode("utf-16"),
    "utf16le": "\ufeffone\n".encode("utf-16-le"),
    "latin1": b"caf\xe9\r\n",
    "sjis": "日本語\n".encode("shift_jis"),
    "ident": b"$Id$\n$Id: 0123456789abcdef $\n",
    "subst": b"$Format:%H$\n",
    "spaces": b"a  \t\n \tb\n\n\n",
    "conflict": b"<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n",
    "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12\n",
    "blob": b"blob 3\0abc",
    "dir/nested.txt": b"nested\r\n",
}

# name: (attributes, configuration). CANARY stands for a command that must never run.
SETTINGS: dict[str, tuple[str, dict[str, str]]] = {
    "nothing": ("", {}),
    "text=auto": ("* text=auto\n", {}),
    "text": ("* text\n", {}),
    "no-text": ("* -text\n", {}),
    "eol=crlf": ("* text eol=crlf\n", {}),
    "eol=lf": ("* text eol=lf\n", {}),
    "auto-eol=crlf": ("* text=auto eol=crlf\n", {}),
    "crlf-input": ("* crlf=input\n", {}),
    "ident": ("* ident\n", {}),
    "utf16": ("* text working-tree-encoding=UTF-16\n", {}),
    "utf16le-bom-crlf": ("* text working-tree-encoding=UTF-16LE-BOM eol=crlf\n", {}),
    "latin1": ("* working-tree-encoding=ISO-8859-1\n", {}),
    "unknown-encoding": ("* working-tree-encoding=NO-SUCH\n", {}),
    "export": ("* export-subst export-ignore\n", {}),
    "whitespace": ("* whitespace=fix,trailing-space\n", {"core.whitespace": "trailing-space"}),
    "binary-macro": ("[attr]odd text eol=crlf ident\n* odd\n", {}),
    "unknown-macro": ("* binary !text nonsense=1 -more\n", {}),
    "autocrlf": ("", {"core.autocrlf": "true"}),
    "autocrlf-input": ("", {"core.autocrlf": "input"}),
    "eol-config": ("* text=auto\n", {"core.eol": "crlf"}),
    "safecrlf": ("* text\n", {"core.autocrlf": "input", "core.safecrlf": "true"}),
    "bigfile": ("", {"core.bigFileThreshold": "1"}),
    "compression": ("", {"core.compression": "0", "core.looseCompression": "9"}),
    "textconv": ("* diff=odd\n", {"diff.odd.textconv": "CANARY"}),
    "external-diff": ("* diff=odd\n", {"diff.odd.command": "CANARY", "diff.external": "CANARY"}),
    "merge-driver": ("* merge=odd\n", {"merge.odd.driver": "CANARY"}),
    "filter": ("* filter=odd\n", {"filter.odd.clean": "CANARY", "filter.odd.smudge": "CANARY"}),
    "filter-required": (
        "* filter=odd\n",
        {
            "filter.odd.clean": "CANARY",
            "filter.odd.smudge": "CANARY",
            "filter.odd.required": "true",
        },
    ),
    "filter-process": (
        "* filter=odd\n",
        {"filter.odd.process": "CANARY", "filter.odd.required": "true"},
    ),
    "filter-missing": (
        "* filter=odd\n",
        {"filter.odd.clean": "no-such-command-at-all", "filter.odd.required": "true"},
    ),
    "lfs-missing": (
        "* filter=lfs diff=lfs merge=lfs -text\n",
        {
            "filter.lfs.clean": "CANARY; git-lfs clean -- %f",
            "filter.lfs.smudge": "CANARY; git-lfs smudge -- %f",
            "filter.lfs.process": "CANARY; git-lfs filter-process",
            "filter.lfs.required": "true",
        },
    ),
}


def _contents(box: Box) -> Box:
    for name, data in CONTENTS.items():
        box.write(f"tracked/{name}", data).write(f"untracked/{name}", data)
    box.git("add", "tracked")
    box.git("commit", "-q", "-m", "contents")
    return box


def _configure(box: Box, settings: dict[str, str]) -> None:
    for key, value in settings.items():
        box.git("config", key, value.replace("CANARY", f"touch {box.canary}"))


def _damage(box: Box) -> Box:
    for top in ("tracked", "untracked"):
        for number, name in enumerate(CONTENTS):
            if number % 2:
                box.remove(f"{top}/{name}")
            else:
                box.write(f"{top}/{name}", b"damaged\r\n$Id$\n")
    return box


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_the_repository_do_not_touch_contents(box: Box, name: str) -> None:
    attributes, settings = SETTINGS[name]
    _contents(box)
    box.write(".gitattributes", attributes)
    _configure(box, settings)

    box.round_trip(lambda: _damage(box))


@pytest.mark.parametrize("where", ["nested", "info", "core.attributesFile", "xdg", "global"])
def test_attributes_from_any_file_do_not_touch_contents(box: Box, where: str) -> None:
    _contents(box)
    command = f"touch {box.canary}"
    _configure(box, {"filter.odd.clean": command, "filter.odd.smudge": command})
    attributes = "* text eol=crlf ident filter=odd\n"
    if where == "nested":
        box.write("tracked/.gitattributes", attributes)
        box.write("untracked/dir/.gitattributes", attributes)
    elif where == "info":
        box.write(".git/info/attributes", attributes)
    elif where == "xdg":
        box.write(f"{box.home}/.config/git/attributes", attributes)
    else:
        scope = "--global" if where == "global" else "--local"
        box.write(f"{box.root}/attributes", attributes)
        box.git("config", scope, "core.attributesFile", f"{box.root}/attributes")

    box.round_trip(lambda: _damage(box))


def test_attributes_that_appear_between_save_and_restore(box: Box) -> None:
    _contents(box)

    def change() -> None:
        _damage(box)
        box.write(".gitattributes", "* text eol=crlf ident working-tree-encoding=UTF-16\n")
        box.git("config", "core.autocrlf", "true")

    box.round_trip(change)


def test_attributes_in_force_at_save_and_gone_at_restore(box: Box) -> None:
    box.write(".gitattributes", "* text eol=crlf ident\n").commit()
    _contents(box)

    box.round_trip(lambda: (_damage(box), box.remove(".gitattributes")))


def test_attributes_of_a_nested_repository(box: Box) -> None:
    box.mkdir("nested").init(where=box.path("nested"))
    box.write("nested/.gitattributes", "* text eol=crlf ident\n")
    box.write("nested/.git/info/attributes", "* working-tree-encoding=UTF-16\n")
    for name, data in CONTENTS.items():
        box.write(f"nested/{name}", data)

    box.round_trip(lambda: [box.write(f"nested/{name}", b"x") for name in CONTENTS])


def test_committed_crlf_file_that_git_would_normalise_on_add(box: Box) -> None:
    box.write("dos.txt", "one\r\n").commit()
    box.write(".gitattributes", "*.txt text\n")
    checkpoint = box.save()
    box.write("dos.txt", "one\n")

    box.restore(checkpoint)

    assert box.read("dos.txt") == b"one\r\n"


def test_only_the_line_endings_changed(either: Box) -> None:
    either.write("a.txt", "a\r\n")

    either.round_trip(lambda: either.write("a.txt", "a\n"))


@pytest.mark.parametrize("size", [4095, 4096, 65536, 3_000_001])
def test_sizes_around_buffer_borders(either: Box, size: int) -> None:
    either.write("blob.bin", os.urandom(size))

    either.round_trip(lambda: either.write("blob.bin", os.urandom(size)))


def test_contents_that_look_like_git_objects(either: Box) -> None:
    either.write("tree", b"tree 0\0").write("commit", b"commit 10\0tree 4b825d")
    either.write("zlib", bytes.fromhex("789c4bcac94f520000059c0192"))

    either.round_trip(lambda: either.empty())


def test_many_files_of_one_content(either: Box) -> None:
    for number in range(50):
        either.write(f"same/{number}", "same\n")

    either.round_trip(lambda: either.remove("same"))


@pytest.mark.slow
def test_a_big_file_is_streamed_and_not_held_in_memory(plain: Box) -> None:
    size = 90 << 20  # below the default limit of 100 MiB
    with open(plain.path("big.bin"), "wb") as file:
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
    script = (
        "import os,resource,subprocess,sys;"
        "code=subprocess.call(sys.argv[1:]);"
        f"open({plain.root + '/peak'!r},'a').write("
        "str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)+'\\n');"
        "sys.exit(code)"
    )
    plain.prefix = [sys.executable, "-c", script]

    checkpoint = plain.save()
    before = plain.picture()
    plain.write("big.bin", "small")
    plain.restore(checkpoint)

    plain.assert_like(before)
    peaks = [int(line) for line in Path(f"{plain.root}/peak").read_text().split()]
    assert max(peaks) * 1024 < size * 0.9, f"peaks of {peaks} KiB for a file of {size} bytes"
