"""Names come back as they were, also those that git, shells and terminals trip over."""

import os

import pytest

from .box import Box, coverage
from .tree import Picture

NAMES: dict[str, bytes] = {
    "non-utf8": b"\xff\xfe\x80",
    "latin1": b"caf\xe9.txt",
    "surrogate": b"\xed\xa0\x80",
    "newline": b"two\nlines",
    "leading-newline": b"\nx",
    "trailing-newline": b"x\n",
    "carriage-return": b"a\rb",
    "tab": b"a\tb",
    "escape": b"\x1b[31mred\x1b[0m",
    "all-controls": bytes(range(1, 32)) + b"\x7f",
    "single-quote": b"it's",
    "double-quote": b'say "hi"',
    "backslash": b"back\\slash\\n",
    "octal-look": b'"\\303\\251"',
    "leading-dash": b"-rf",
    "double-dash": b"--",
    "option-look": b"--help",
    "stdin-look": b"-",
    "magic-top": b":(top)x",
    "magic-exclude": b":!x",
    "magic-caret": b":^a.txt",
    "magic-slash": b":",
    "star": b"*",
    "question": b"?",
    "brackets": b"[a-z].txt",
    "bang": b"!a.txt",
    "hash": b"#comment",
    "tilde": b"~",
    "dollar": b"$HOME`id`$(id)",
    "percent": b"%s%n%(objectname)",
    "space": b" ",
    "inner-spaces": b" a  b ",
    "trailing-dot": b"name.",
    "dots": b"...",
    "long": b"x" * 255,
    "long-non-ascii": "é".encode() * 127,
    "nfc": "\u00e9".encode(),
    "nfd": b"e\xcc\x81",
    "emoji": "👩‍👩‍👧".encode(),
    "rtl": "\u202eexe.txt".encode(),
    "windows-device": b"CON",
    "windows-colon": b"a:b",
    "windows-reserved": b"aux.txt",
    "git-tilde": b"git~1",
    "GIT-tilde": b"GIT~1",
    "GIT": b".GIT",
    "Git": b".Git",
    "git-space": b".git ",
    "git-dot": b".git.",
    "git-dots": b".git...",
    "git-stream": b".git::$INDEX_ALLOCATION",
    "git-hfs": ".g\u200cit".encode(),
    "git-backslash": b".git\\config",
    "gitmodules": b".gitmodules",
    "GITMODULES": b".GITMODULES",
    "gitmodules-tilde": b"gitmod~1",
    "gitattributes": b".gitattributes",
    "HEAD": b"HEAD",
    "index-lock": b"index.lock",
    "temporary-look": b".a.txt.tmp",
    "tilde-backup": b"a.txt~",
    "null-word": b"null",
    "sha-look": b"4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "zero": b"0",
    "rewind": b".rewind",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_that_name(box: Box, name: str) -> None:
    """Deleted it comes back, changed it changes back, and created later it goes away."""
    there, later = NAMES[name], b"later/" + NAMES[name]
    box.write(there, "first\r\n").write(b"sub/deleted/" + there, "kept\n")

    def change() -> None:
        box.write(there, "second\n")
        box.remove(b"sub/deleted")
        box.write(later, "new\n")

    box.round_trip(change)


def _every_name(box: Box, top: bytes) -> Box:
    for number, name in enumerate(NAMES.values()):
        box.write(top + b"/files/" + name, f"{number}\n")
        box.write(top + b"/folders/" + name + b"/inside", f"{number}\n")
        box.symlink(top + b"/links/" + name, name)
        box.mkdir(top + b"/empty/" + name)
    return box


def test_every_name_as_file_folder_symlink_and_empty_folder(either: Box) -> None:
    _every_name(either, b"there")

    either.round_trip(lambda: (either.remove(b"there"), _every_name(either, b"later")))


def test_every_name_tracked_by_the_user_where_git_allows_it(box: Box) -> None:
    for number, name in enumerate(NAMES.values()):
        box.write(b"there/" + name, f"{number}\n")
        literal = {**box.env, "GIT_LITERAL_PATHSPECS": "1"}
        box.env, sealed = literal, box.env
        box.git("add", "-f", "--", os.fsdecode(b"there/" + name), ok=False)
        box.env = sealed
    box.git("commit", "-q", "-m", "names")

    box.round_trip(lambda: box.remove(b"there"))


def test_both_unicode_forms_side_by_side(either: Box) -> None:
    either.git("init", "-q") if either.exists(".git") else None
    either.write("\u00e9".encode(), "composed").write(b"e\xcc\x81", "decomposed")

    either.round_trip(lambda: either.write(b"e\xcc\x81", "x").remove("\u00e9".encode()))


def test_precomposed_unicode_setting_is_not_followed(box: Box) -> None:
    box.git("config", "core.precomposeUnicode", "true")
    box.write("\u00e9".encode(), "composed").write(b"e\xcc\x81", "decomposed")

    box.round_trip(lambda: box.remove(b"e\xcc\x81"))


@pytest.mark.parametrize("ignore_case", ["true", "false"])
def test_names_that_differ_by_case_only(box: Box, ignore_case: str) -> None:
    box.git("config", "core.ignoreCase", ignore_case)
    box.write("Readme", "1").write("README", "2").write("Dir/a", "3").write("dir/a", "4")

    box.round_trip(lambda: box.remove("README").remove("dir").write("readme", "5"))


def test_a_rename_that_changes_case_only(box: Box) -> None:
    box.git("config", "core.ignoreCase", "true")
    box.write("Name.txt", "the same text\n").commit()

    box.round_trip(lambda: os.rename(box.path("Name.txt"), box.path("name.txt")))


def test_git_protections_of_the_user_do_not_stop_a_save(box: Box) -> None:
    box.git("config", "core.protectNTFS", "true")
    box.git("config", "core.protectHFS", "true")
    box.write(b"git~1", "1").write(b"a\\b", "2").write(".g\u200cit".encode() + b"/x", "3")

    box.round_trip(lambda: box.remove(b"git~1").remove(b"a\\b"))


def test_gitmodules_as_a_symlink(box: Box) -> None:
    box.symlink(".gitmodules", "a.txt").symlink("sub/.gitattributes", "../a.txt")

    box.round_trip(lambda: box.remove(".gitmodules").remove("sub/.gitattributes"))


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", ".gitmodules"])
def test_a_folder_in_place_of_a_git_control_file(box: Box, name: str) -> None:
    box.write(f"{name}/file", "1").mkdir(f"sub/{name}")

    box.round_trip(lambda: box.remove(name).remove(f"sub/{name}"))


@pytest.mark.parametrize(
    "text", ["", "garbage [[[", '[submodule "x"]\n\tpath = ../../etc\n\turl = -u\n']
)
def test_a_broken_gitmodules_file(box: Box, text: str) -> None:
    box.write(".gitmodules", text)

    box.round_trip(lambda: box.write(".gitmodules", "other").remove("a.txt"))


def test_names_whose_order_differs_between_git_and_sorting(either: Box) -> None:
    for name in ("a/b", "a-b", "a.b", "a0", "a b", "a=b", "ab/c", "ab.c"):
        either.write(f"order/{name}", name)

    either.round_trip(lambda: either.remove("order/a").write("order/a", "a file now"))


def test_a_rename_gives_back_the_old_name_and_takes_away_the_new(either: Box) -> None:
    either.write("old.txt", "the same text, long enough to be found as a rename\n" * 20)

    either.round_trip(lambda: os.rename(either.path("old.txt"), either.path("new.txt")))


def test_renames_setting_of_the_user_does_not_hide_a_deletion(box: Box) -> None:
    box.git("config", "diff.renames", "copies")
    box.git("config", "status.renames", "copies")
    box.write("old/name.txt", "text\n" * 50).commit()

    box.round_trip(lambda: os.rename(box.path("old"), box.path("new")))


def test_two_files_that_swapped_their_names(either: Box) -> None:
    def swap() -> None:
        os.rename(either.path("a.txt"), either.path("t"))
        os.rename(either.path("sub/b.txt"), either.path("a.txt"))
        os.rename(either.path("t"), either.path("sub/b.txt"))

    either.round_trip(swap)


def test_a_tree_of_two_hundred_levels(either: Box) -> None:
    either.write("d/" * 200 + "file", "deep\n")

    either.round_trip(lambda: either.remove("d"))


def test_a_deep_tree_that_appears_later(either: Box) -> None:
    either.round_trip(lambda: either.write("d/" * 200 + "file", "deep\n"))


def test_a_tree_of_very_many_levels_that_appears_later(either: Box) -> None:
    """More than Python would recurse into."""
    checkpoint = either.save()
    deepest = either.path("d/" * 1500 + "file")
    os.system(f"mkdir -p {os.path.dirname(deepest)}")
    with open(deepest, "w") as file:
        file.write("deep\n")

    either.restore(checkpoint, check_git=False)
    assert not either.exists("d")
    either.rewind("undo-restore", check_git=False)
    with open(deepest) as file:
        assert file.read() == "deep\n"
    os.system(f"rm -rf {either.path('d')}")


def _beyond_path_max(box: Box) -> None:
    """Folders within folders, longer in sum than any single path may be."""
    here = os.open(box.project, os.O_RDONLY)
    for _ in range(18):
        os.mkdir("x" * 250, dir_fd=here)
        inside = os.open("x" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inside
    with os.fdopen(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here), "w") as file:
        file.write("beyond\n")
    os.close(here)


def test_paths_beyond_path_max_do_not_stop_the_rest(either: Box) -> None:
    _beyond_path_max(either)
    before = either.picture()
    answer = either.rewind("save")
    either.write("a.txt", "changed").remove("sub")

    either.restore(str(answer["id"]), ok=False)

    either.assert_like(before)


def test_a_path_beyond_path_max_that_is_gone_is_restored_or_was_in_coverage(either: Box) -> None:
    _beyond_path_max(either)
    before = either.picture()
    answer = either.rewind("save")
    os.system(f"rm -rf {either.path('x' * 250)}")

    either.restore(str(answer["id"]), ok=False)

    left_out = coverage(answer)
    missing = [path for path in before if path not in either.picture()]
    for path in missing:
        assert any(path == out or path.startswith(out + b"/") for out in left_out), path


def test_names_in_json_are_escaped_and_round_trip(plain: Box) -> None:
    """The path a save gives for what it left out is the path itself, bytes and all."""
    os.mkfifo(os.path.join(os.fsencode(plain.project), b'p\xffi\np"e'))

    answer = plain.rewind("save")

    assert b'p\xffi\np"e' in coverage(answer)
    answer.out.decode("ascii")


def test_restoring_one_path_with_a_difficult_name(either: Box) -> None:
    names = [b"--", b"*", b":(top)x", b"\xff", b"new\nline"]
    for name in names:
        either.write(b"odd/" + name, "first")
    checkpoint = either.save()
    for name in names:
        either.write(b"odd/" + name, "second")
    wanted: Picture = either.picture()

    either.restore(checkpoint, "--path", "odd/*")

    assert either.read("odd/*") == b"first"
    wanted[b"odd/*"] = either.picture()[b"odd/*"]
    either.assert_like(wanted)
