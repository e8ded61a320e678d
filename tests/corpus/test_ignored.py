"""The ignore rules are git's; what they hide keeps its present content through everything."""

import os
from collections.abc import Callable

import pytest

from .box import Box, coverage
from .tree import Picture

Rules = Callable[[Box], object]


def _xdg(box: Box) -> None:
    box.write(f"{box.home}/.config/git/ignore", "secret\n")


def _xdg_moved(box: Box) -> None:
    box.env["XDG_CONFIG_HOME"] = f"{box.root}/xdg"
    box.write(f"{box.root}/xdg/git/ignore", "secret\n")


def _excludes_file(scope: str) -> Rules:
    def rules(box: Box) -> None:
        box.write(f"{box.root}/excludes", "secret\n")
        box.git("config", scope, "core.excludesFile", f"{box.root}/excludes")

    return rules


def _excludes_file_with_tilde(box: Box) -> None:
    box.write(f"{box.home}/excludes", "secret\n")
    box.git("config", "--global", "core.excludesFile", "~/excludes")


def _excludes_file_by_include(box: Box) -> None:
    box.write(f"{box.root}/excludes", "secret\n")
    box.write(f"{box.root}/more", f"[core]\n\texcludesFile = {box.root}/excludes\n")
    box.git("config", "--global", "includeIf.gitdir:" + box.project + "/.path", f"{box.root}/more")


def _relative_excludes_file(box: Box) -> None:
    box.write(f"{box.project}/.excludes", "secret\n")
    box.git("config", "core.excludesFile", ".excludes")


# Each hides `secret` and `sub/secret`.
RULES: dict[str, Rules] = {
    "name": lambda box: box.write(".gitignore", "secret\n"),
    "crlf": lambda box: box.write(".gitignore", "secret\n/*.o\n\n# x\n"),
    "bom": lambda box: box.write(".gitignore", b"\xef\xbb\xbfsecret\n"),
    "no-newline": lambda box: box.write(".gitignore", "secret"),
    "anchored": lambda box: box.write(".gitignore", "/secret\n/sub/secret\n"),
    "two-stars": lambda box: box.write(".gitignore", "**/secret\n"),
    "glob": lambda box: box.write(".gitignore", "sec?[a-r]*t\n"),
    "negated-then-again": lambda box: box.write(".gitignore", "secret\n!secret\nsecret\n"),
    "nested": lambda box: box.write(".gitignore", "/secret\n").write("sub/.gitignore", "secret\n"),
    "everything-but": lambda box: box.write(".gitignore", "*\n!*/\n!*.txt\n!.gitignore\n"),
    "info": lambda box: box.write(".git/info/exclude", "secret\n"),
    "core.excludesFile": _excludes_file("--local"),
    "core.excludesFile-global": _excludes_file("--global"),
    "core.excludesFile-tilde": _excludes_file_with_tilde,
    "core.excludesFile-included": _excludes_file_by_include,
    "core.excludesFile-relative": _relative_excludes_file,
    "xdg": _xdg,
    "xdg-moved": _xdg_moved,
}


@pytest.mark.parametrize("rules", RULES)
def test_ignored_files_keep_their_present_content(box: Box, rules: str) -> None:
    """Changed since, they stay changed; created since, they stay; deleted since, they stay away."""
    RULES[rules](box)
    box.write("secret", "then").write("sub/secret", "then")
    assert box.git("check-ignore", "secret", "sub/secret") == b"secret\nsub/secret\n"
    checkpoint = box.save()
    box.write("secret", "now").remove("sub/secret")
    box.write("a.txt", "changed").write("new.txt", "x").mkdir("later").write("later/secret", "now")
    box.write("sub/b.txt", "changed")

    box.restore(checkpoint)

    assert box.read("secret") == b"now"
    assert not box.exists("sub/secret")
    if rules not in ("anchored", "nested"):
        assert box.read("later/secret") == b"now"
    assert box.read("a.txt") == b"a\n"
    assert box.read("sub/b.txt") == b"b\n"
    assert not box.exists("new.txt")


def test_negated_rules_are_captured(box: Box) -> None:
    box.write(".gitignore", "logs/*\n!logs/keep\n*.o\n!important.o\n")
    box.write("logs/keep", "1").write("logs/x", "1").write("important.o", "1").write("x.o", "1")
    checkpoint = box.save()
    for name in ("logs/keep", "logs/x", "important.o", "x.o"):
        box.write(name, "2")

    box.restore(checkpoint)

    assert [box.read(name) for name in ("logs/keep", "important.o")] == [b"1", b"1"]
    assert [box.read(name) for name in ("logs/x", "x.o")] == [b"2", b"2"]


def test_info_exclude_of_the_main_repository_in_a_linked_worktree(bare_box: Box) -> None:
    main = f"{bare_box.root}/main"
    os.makedirs(main)
    bare_box.init(where=main).write(f"{main}/a.txt", "a\n").commit(cwd=main)
    os.rmdir(bare_box.project)
    bare_box.git("worktree", "add", "-q", bare_box.project, cwd=main)
    bare_box.write(f"{main}/.git/info/exclude", "secret\n")
    bare_box.write("secret", "then")
    checkpoint = bare_box.save()
    bare_box.write("secret", "now").write("a.txt", "changed")

    bare_box.restore(checkpoint)

    assert bare_box.read("secret") == b"now"
    assert bare_box.read("a.txt") == b"a\n"


def test_excludes_file_with_ignorecase(box: Box) -> None:
    box.git("config", "core.ignoreCase", "true")
    box.write(".gitignore", "SECRET\n").write("secret", "then")
    checkpoint = box.save()
    box.write("secret", "now").write("a.txt", "changed")

    box.restore(checkpoint)

    assert box.read("secret") == b"now"


def test_tracked_files_are_captured_though_ignored(box: Box) -> None:
    box.write("log.log", "1\n").write("build/out", "1\n").commit()
    box.write(".gitignore", "*.log\nbuild/\n")

    box.round_trip(lambda: box.write("log.log", "2\n").remove("build"))


def test_a_file_captured_once_stays_captured_when_it_becomes_ignored(box: Box) -> None:
    box.write("notes", "1")
    box.save()
    box.write(".gitignore", "notes\n").write("notes", "2")
    second = box.save()
    box.write("notes", "3")

    box.restore(second)

    assert box.read("notes") == b"2"


def _environment(box: Box) -> Picture:
    """A project as they are: dependencies, secrets and build output, all ignored."""
    box.write(".gitignore", "node_modules/\n.env\n*.log\nbuild/\n").commit()
    box.write("node_modules/left/pad.js", "module\n").write(".env", "TOKEN=1\n")
    box.write("build/out.o", "object\n").write("sub/debug.log", "log\n")
    return {
        path: node
        for path, node in box.picture().items()
        if path.startswith((b"node_modules", b".env", b"build")) or path == b"sub/debug.log"
    }


def _assert_kept(box: Box, wanted: Picture) -> None:
    found = box.picture()
    lost = [path for path, node in wanted.items() if found.get(path) != node]
    assert lost == [], "ignored files must survive"


@pytest.mark.parametrize("content", [None, "", "*.tmp\n", "!*\n"])
def test_a_damaged_gitignore_costs_no_ignored_file(box: Box, content: str | None) -> None:
    """The agent empties, replaces or deletes .gitignore; node_modules and .env must stay."""
    hidden = _environment(box)
    checkpoint = box.save()
    box.remove(".gitignore") if content is None else box.write(".gitignore", content)
    box.write("a.txt", "changed").write("new", "x")

    box.restore(checkpoint)

    _assert_kept(box, hidden)
    assert box.read(".gitignore") == b"node_modules/\n.env\n*.log\nbuild/\n"
    assert box.read("a.txt") == b"a\n"
    assert not box.exists("new")


@pytest.mark.parametrize("content", [None, ""])
def test_a_damaged_gitignore_that_was_saved_as_such(box: Box, content: str | None) -> None:
    """A checkpoint in between captured the hidden files; going back must keep them all the same."""
    hidden = _environment(box)
    checkpoint = box.save()
    box.remove(".gitignore") if content is None else box.write(".gitignore", content)
    damaged = box.save()

    box.restore(checkpoint)
    _assert_kept(box, hidden)
    box.restore(damaged)
    _assert_kept(box, hidden)


def test_a_nested_gitignore_deleted_with_its_folder_rules(box: Box) -> None:
    box.write("web/.gitignore", "dist/\n").commit()
    box.write("web/dist/bundle.js", "built\n")
    checkpoint = box.save()
    box.remove("web/.gitignore")

    box.restore(checkpoint)

    assert box.read("web/dist/bundle.js") == b"built\n"
    assert box.exists("web/.gitignore")


def test_info_exclude_emptied_between(box: Box) -> None:
    box.write(".git/info/exclude", ".env\n").write(".env", "TOKEN\n")
    checkpoint = box.save()
    box.write(".git/info/exclude", "").write("a.txt", "changed")

    box.restore(checkpoint)

    assert box.read(".env") == b"TOKEN\n"


def test_a_global_excludes_file_removed_between(box: Box) -> None:
    _xdg(box)
    box.write("secret", "s")
    checkpoint = box.save()
    os.remove(f"{box.home}/.config/git/ignore")
    box.write("a.txt", "changed")

    box.restore(checkpoint)

    assert box.read("secret") == b"s"


def test_a_file_that_is_ignored_now_and_was_captured_then(box: Box) -> None:
    """Rules grew: the restore gives the captured file back, and the rescue has the present one."""
    box.write("notes", "then")
    checkpoint = box.save()
    box.write(".gitignore", "notes\n").write("notes", "now")

    box.restore(checkpoint)
    assert box.read("notes") == b"then"
    box.rewind("undo-restore")
    assert box.read("notes") == b"now"


def test_a_file_that_is_ignored_now_and_did_not_exist_then(box: Box) -> None:
    """Nothing says whether it is precious: it stays, or the rescue gives it back."""
    checkpoint = box.save()
    box.write(".gitignore", ".env\n").write(".env", "TOKEN")

    box.restore(checkpoint)

    assert not box.exists(".gitignore")
    if not box.exists(".env"):
        box.rewind("undo-restore")
    assert box.read(".env") == b"TOKEN"


WAYS: dict[str, Rules] = {
    "folder-where-a-file-was": lambda box: box.remove("spot").write("spot/data", "ignored data"),
    "file-where-a-folder-was": lambda box: box.remove("tree").write("tree", "ignored data"),
    "symlink-where-a-folder-was": lambda box: box.remove("tree").symlink("tree", "a.txt"),
    "file-where-a-symlink-was": lambda box: box.remove("link").write("link", "ignored data"),
    "same-file": lambda box: box.write("spot", "ignored data"),
}


@pytest.mark.parametrize("way", WAYS)
def test_ignored_data_in_the_way_is_in_the_rescue(box: Box, way: str) -> None:
    box.write("spot", "captured").write("tree/file", "captured").symlink("link", "a.txt")
    before = box.picture()
    checkpoint = box.save()
    box.write(".git/info/exclude", "/spot\n/tree\n/link\ndata\n")
    WAYS[way](box)
    after = box.picture()

    box.restore(checkpoint)
    box.assert_like(before, "the project after the restore")
    box.rewind("undo-restore")
    box.assert_like(after, "the project after undoing the restore")


def test_an_ignored_folder_beside_restored_files_in_a_deleted_folder(box: Box) -> None:
    """The folder is new except for ignored content: the content stays, so does the folder."""
    box.write(".gitignore", "cache/\n").commit()
    checkpoint = box.save()
    box.write("later/file", "x").write("later/cache/data", "keep")

    box.restore(checkpoint)

    assert not box.exists("later/file")
    assert box.read("later/cache/data") == b"keep"


def test_an_empty_folder_that_is_ignored_stays(box: Box) -> None:
    box.write(".gitignore", "out/\n").commit()
    checkpoint = box.save()
    box.mkdir("out/empty").write("a.txt", "changed")

    box.restore(checkpoint)

    assert box.exists("out/empty")


@pytest.mark.parametrize("way", ["undo-restore", "redo"])
def test_an_empty_folder_that_was_ignored_stays_when_its_rule_comes_back(
    either: Box, way: str
) -> None:
    either.save()
    either.write(".gitignore", "out/\n").mkdir("out/empty").mkdir("sub/out", 0o700)
    before = either.picture()
    either.rewind("undo")
    assert either.exists("out/empty")

    either.rewind(way)

    either.assert_like(before)


def test_a_folder_that_was_captured_and_stands_there_ignored(either: Box) -> None:
    """It gets its mode of then, and has its own again afterwards."""
    either.mkdir("out", 0o700).write("out/file", "then")
    checkpoint = either.save()
    either.remove("out").save()
    either.write(".gitignore", "out\n").mkdir("out", 0o750).write("out/data", "now")
    before = either.picture()
    either.restore(checkpoint)
    assert either.mode("out") == 0o700
    assert either.read("out/data") == b"now"

    either.rewind("undo-restore")

    either.assert_like(before)


def test_a_gitignore_that_ignores_itself(box: Box) -> None:
    box.write("cache/.gitignore", "*\n").write("cache/data", "then")
    checkpoint = box.save()
    box.write("cache/data", "now").write("a.txt", "changed")

    box.restore(checkpoint)

    assert box.read("cache/data") == b"now"
    assert box.exists("cache/.gitignore")


def test_a_gitignore_that_ignored_itself_and_does_no_more(either: Box) -> None:
    either.write("own/.gitignore", "*\n").write("own/file", "x")
    assert b"own/file" in coverage(either.rewind("save"))
    either.remove("own/.gitignore").write("own/.gitignore", "nothing\n")

    assert coverage(either.rewind("save")) == {}


def test_a_gitignore_that_is_a_symlink_is_not_followed(box: Box) -> None:
    """As git does since 2.32."""
    box.write("rules", "data\n").symlink(".gitignore", "rules").write("data", "then")

    box.round_trip(lambda: box.write("data", "now"))


def test_rules_of_folders_do_not_hide_tracked_content_within(box: Box) -> None:
    box.write("build/tracked", "1").commit()
    box.write(".gitignore", "build/\n").write("build/untracked", "then")
    checkpoint = box.save()
    box.write("build/tracked", "2").write("build/untracked", "now")

    box.restore(checkpoint)

    assert box.read("build/tracked") == b"1"
    assert box.read("build/untracked") == b"now"


def test_status_settings_of_the_user_do_not_hide_untracked_files(box: Box) -> None:
    box.git("config", "--global", "status.showUntrackedFiles", "no")
    box.git("config", "--global", "status.relativePaths", "true")
    box.write("deep/er/new", "1")

    box.round_trip(lambda: box.remove("deep"))


def test_dependency_folders_survive_and_are_said_to_be_left_out(box: Box) -> None:
    """Untracked and not even ignored: left out by default."""
    box.write("node_modules/x/index.js", "1").write(".venv/bin/python", "1", 0o755)
    answer = box.rewind("save")
    held = coverage(answer)
    assert {path.rstrip(b"/") for path in held} >= {b"node_modules", b".venv"}
    box.write("node_modules/x/index.js", "2").remove(".venv").write("a.txt", "changed")

    box.restore(str(answer["id"]), ok=False)

    assert box.read("node_modules/x/index.js") == b"2"
    assert box.read("a.txt") == b"a\n"


def test_a_file_that_the_rules_of_then_would_hide_in_the_place_of_a_folder(either: Box) -> None:
    """The rules hide files of that name; the folder was captured before them."""
    either.mkdir("thing").save()
    either.write(".gitignore", "thing\n")
    checkpoint = either.save()
    before = either.picture()
    either.write(".gitignore", "").remove("thing").write("thing", "a file").write("a.txt", "2\n")
    after = either.picture()
    either.save()

    either.restore(checkpoint)
    either.assert_like(before)

    either.rewind("undo-restore")
    either.assert_like(after)
