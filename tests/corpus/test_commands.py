"""Exit codes, and the commands that only tell."""

import contextlib
import json
import os
import pty
import time

import pytest

from .box import Box


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["bridge"],
        ["save", "--nonsense"],
        ["restore"],
        ["label", "@"],
        ["pin"],
        ["show"],
        ["list", "--limit", "many"],
        ["undo", "many"],
        ["gc", "--keep", "-1"],
        ["restore", "@", "@"],
        ["undo", "0"],
        ["undo", "-1"],
    ],
    ids=" ".join,
)
def test_usage_errors_exit_2(either: Box, words: list[str]) -> None:
    either.save()

    with either.expect_unchanged():
        answer = either.rewind(words[0], *words[1:], ok=False)

    assert answer.code == 2 or (answer.code == 1 and words[-1] in ("0", "-1"))


@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["--version"], ["save", "--help"]], ids=" ".join
)
def test_help_needs_nothing(plain: Box, words: list[str]) -> None:
    process = plain.start(*words, cwd=plain.project)
    out, error = process.communicate(timeout=60)

    assert process.returncode == 0, error
    assert out


def test_a_diff_of_two_checkpoints(either: Box) -> None:
    one = either.save()
    either.write("a.txt", "changed\n").write("new\u00e9.txt", "n\n").remove("sub")
    two = either.save()

    answer = either.rewind("diff", one, two)

    for name in ("a.txt", "new\u00e9.txt", "sub/b.txt"):
        assert name in answer.said or name in json.dumps(answer.data), name


def test_a_diff_against_now(either: Box) -> None:
    one = either.save()
    either.write("a.txt", "changed\n")

    assert "a.txt" in either.rewind("diff", one).said
    assert "sub/b.txt" not in either.rewind("diff", one).said


def test_a_diff_limited_to_a_path(either: Box) -> None:
    one = either.save()
    either.write("a.txt", "changed\n").write("sub/b.txt", "changed\n")

    process = either.start("-C", either.project, "diff", one, "--patch", "--", "sub")
    out, error = process.communicate(timeout=60)

    assert process.returncode == 0, error
    assert b"sub/b.txt" in out
    assert b"a.txt" not in out


def test_a_diff_tells_modes_and_empty_folders_of_its_path(plain: Box) -> None:
    one = plain.save()
    plain.write("a.txt", "a\n", 0o600).write("sub/b.txt", "b\n", 0o640).mkdir("sub/empty")

    assert plain.rewind("diff", one)["other"] == [
        "mode usual -> 600: a.txt", "mode usual -> 640: sub/b.txt", "new empty folder: sub/empty"]
    assert plain.rewind("diff", one, "--", "sub/empty")["other"] == ["new empty folder: sub/empty"]
    out, _ = plain.start("-C", plain.project, "diff", one, "--", "a.txt").communicate(timeout=60)
    assert out == b"mode usual -> 600: a.txt\n"


def test_a_patch_shows_the_bytes_whatever_the_attributes_say(box: Box) -> None:
    box.write(".gitattributes", "*.txt diff=odd -diff\n")
    box.git("config", "diff.odd.textconv", f"touch {box.canary}; cat")
    box.git("config", "diff.external", f"touch {box.canary}; true")
    one = box.save()
    box.write("a.txt", "changed\n")

    process = box.start("-C", box.project, "diff", one, "--patch")
    out, error = process.communicate(timeout=60)

    assert process.returncode == 0, error
    assert b"a.txt" in out


def test_show_tells_the_coverage(either: Box) -> None:
    os.mkfifo(either.path("pipe"))
    checkpoint = either.save()

    assert "pipe" in either.rewind("show", checkpoint).said


def test_status_tells_the_coverage_of_the_last_checkpoint(either: Box) -> None:
    os.mkfifo(either.path("pipe"))
    either.save()

    assert "pipe" in either.rewind("status").said


def test_a_first_save_counts_all_files_also_after_one_that_was_interrupted(either: Box) -> None:
    either.rewind("init")
    private = os.path.dirname(either.store()) + "/worktrees/main"
    # As if killed between the capture and its record.
    os.unlink(f"{either.store()}/refs/heads/main")
    os.unlink(f"{private}/ledger.jsonl")

    assert either.rewind("save")["files"] == 2


@pytest.mark.parametrize("command", ["status", "list", "doctor", "validate", "config"])
def test_telling_changes_nothing_and_makes_no_store(either: Box, command: str) -> None:
    with either.expect_unchanged():
        either.rewind(command, ok=False)

    assert not os.path.isdir(f"{either.store_home}/storage") or not os.listdir(
        f"{either.store_home}/storage"
    )


def test_the_name_of_the_folder_does_not_drive_the_terminal(room: str) -> None:
    box = Box(room, b"\x1b[31mred\nline")
    for words in (["init"], ["status"], ["store"], ["save"]):
        out, error = box.start("-C", box.project, *words).communicate(timeout=60)
        assert b"\x1b" not in out + error, words


def test_each_folder_is_seen_from_the_one_before_it(plain: Box) -> None:
    plain.save()
    top, last = os.path.split(plain.project)

    for words in (["-C", top, "-C", last, "store", "--path"], ["-C", top, "store", "-C", last],
                  ["store", "-C", top, "-C", last], ["-C", plain.project, "-C", "", "store"],
                  ["-C", "/nowhere", "-C", plain.project, "store"]):
        out, error = plain.start(*words, cwd="/").communicate(timeout=60)
        assert plain.store() in out.decode(), error


def test_status_names_worktree_and_store(either: Box) -> None:
    either.save()
    said = json.dumps(either.rewind("status").data)

    assert either.project in said
    assert either.store() in said


def test_validate_names_an_unknown_key_and_its_file(either: Box) -> None:
    os.makedirs(either.store_home)
    either.write(f"{either.store_home}/config.json", '{"filters": {"maxFileBites": 1}}')
    answer = either.rewind("validate", ok=False)

    assert answer.code == 1
    assert "maxFileBites" in answer.said
    assert "config.json" in answer.said


@pytest.mark.parametrize(
    "text",
    [
        '{"filters": {"maxFileBytes": "big"}}',
        '{"filters": []}',
        "[]",
        "{",
        "",
        "\xff",
        '{"retention": {"maxSnapshots": -5}}',
    ],
)
def test_validate_names_wrong_values(either: Box, text: str) -> None:
    os.makedirs(either.store_home)
    either.write(f"{either.store_home}/config.json", text.encode("latin1"))
    answer = either.rewind("validate", ok=False)

    assert answer.code == 1
    assert "config.json" in answer.said
    either.rewind("save", ok=False)


def test_a_wrong_value_cannot_be_set(either: Box) -> None:
    either.rewind("init", "--yes")

    for key, value in [
        ("filters.maxFileBytes", "big"),
        ("no.such.key", "1"),
        ("storage.mode", "cloud"),
    ]:
        assert either.rewind("config", key, value, ok=False).code in (1, 2), key
    either.rewind("validate")


def test_a_set_value_is_shown_with_its_source(either: Box) -> None:
    either.rewind("init", "--yes")
    either.rewind("config", "retention.maxSnapshots", "77")

    assert "77" in either.rewind("config", "retention.maxSnapshots").said
    assert "77" in either.rewind("config").said


@pytest.mark.parametrize("command", ["save", "list", "status", "doctor", "config", "gc", "init"])
def test_json_is_ascii_safe_and_alone_on_stdout(either: Box, command: str) -> None:
    either.save("ünï \udcff".replace("\udcff", ""))
    answer = either.rewind(command, *(["--yes"] if command == "init" else []))

    assert isinstance(answer.data, dict)


def test_an_error_in_json_leaves_stdout_to_json(either: Box) -> None:
    answer = either.rewind("restore", "nothing", "--yes", ok=False)

    assert answer.code == 1
    assert answer.err.strip() or answer.data


def test_a_demo_leaves_nothing_behind(plain: Box) -> None:
    """Within its scratch folder; the project and HOME stay as they are."""
    with plain.expect_unchanged():
        process = plain.start("demo", cwd=plain.project)
        out, error = process.communicate(timeout=60)

    assert process.returncode == 0, error
    assert out
    assert os.listdir(plain.home) == []


def test_colour_only_on_a_terminal(either: Box) -> None:
    one = either.save()
    either.write("a.txt", "x")
    for words in (["list"], ["diff", one, "--patch"], ["status"], ["show", one]):
        process = either.start("-C", either.project, *words)
        out, _ = process.communicate(timeout=60)
        assert b"\x1b[" not in out, words


def test_names_do_not_drive_the_terminal(either: Box) -> None:
    one = either.save()
    either.write("\x1b[31mred\x1b[0m\x07", "x", 0o600).mkdir("\x1b[31mempty")
    for words in (["diff", one, "--stat"], ["diff", one], ["restore", one, "--dry-run"],
                  ["status"]):
        process = either.start("-C", either.project, *words)
        out, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
        assert b"\x1b[31m" not in out, words


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("filters.directories", "a/b"),
        ("filters.maxFileBytes", "-1"),
        ("filters.maxFileBytes", "many"),
        ("tier", "nonsense"),
        ("autoInit", "maybe"),
        ("filters", "1"),
        ("nonsense", "1"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_and_not_written(
    plain: Box, key: str, value: str
) -> None:
    answer = plain.rewind("config", "--", key, value, ok=False)

    assert answer.code == 2, str(answer)
    assert key in answer.said
    assert plain.rewind("config")["tier"]["source"] == "default"


def test_status_knows_where_a_restore_put_the_folder(plain: Box) -> None:
    first = plain.save()
    plain.write("a.txt", "changed\n")
    plain.save()
    time.sleep(1.1)  # in another second the same files must still be the same snapshot

    plain.restore(first)

    status = plain.rewind("status")
    assert status["changed"] is False
    assert status["standing"]["id"] == first


def test_the_same_files_are_the_same_snapshot_however_they_came(plain: Box) -> None:
    one = plain.rewind("save")
    plain.write("a.txt", "changed\n")
    plain.save()
    time.sleep(1.1)
    plain.write("a.txt", "a\n")

    again = plain.rewind("save")

    assert again["snapshot"] == one["snapshot"]
    assert again["files"] == 1
    assert again["reused"] is False, "one file differs from the newest checkpoint"


def test_a_save_after_a_look_says_what_changed(plain: Box) -> None:
    plain.save()
    plain.write("a.txt", "changed\n")
    plain.rewind("status")

    answer = plain.rewind("save")

    assert (answer["files"], answer["reused"]) == (1, False)


def _at_a_terminal(box: Box, *words: str, answer: str) -> tuple[int, str]:
    """A command's exit code and all it shows to somebody who types an answer."""
    ours, theirs = pty.openpty()
    process = box.start("-C", box.project, *words, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, answer.encode())
    said = b""
    with contextlib.suppress(OSError):  # how Linux says that the other side is closed
        while piece := os.read(ours, 4096):
            said += piece
    os.close(ours)
    return process.wait(timeout=60), said.decode()


def test_a_restore_asks_and_no_is_no(plain: Box) -> None:
    first = plain.save()
    plain.write("a.txt", "changed\n")

    with plain.expect_unchanged():
        code, said = _at_a_terminal(plain, "restore", first, answer="n\n")

    assert code == 1
    assert "Restore?" in said
    assert "nothing was changed" in said


def test_a_restore_asks_and_shows_its_plan_once(plain: Box) -> None:
    first = plain.save()
    plain.write("a.txt", "changed\n")

    code, said = _at_a_terminal(plain, "restore", first, answer="y\n")

    assert code == 0
    assert plain.read("a.txt") == b"a\n"
    assert said.count("a.txt") == 1
    assert "verified" in said


@pytest.mark.parametrize(
    ("env", "configured", "shown"),
    [
        ({"GIT_PAGER": "sed s/^/A:/ | cat", "PAGER": "false"}, "false", "A:+changed"),
        ({"PAGER": "false"}, "sed s/^/B:/", "B:+changed"),
        ({"PAGER": "sed s/^/C:/"}, "", "C:+changed"),
        ({"GIT_PAGER": "", "PAGER": "false"}, "false", "+changed"),
        ({"GIT_PAGER": "cat", "PAGER": "false"}, "false", "+changed"),
        ({"PAGER": "no-such-pager -x"}, "", "+changed"),
    ],
)
def test_a_diff_goes_through_the_pager_that_git_would_take(
    box: Box, env: dict[str, str], configured: str, shown: str
) -> None:
    box.git("config", "core.pager", f"touch {box.canary}")  # what a repository says is not run
    if configured:
        box.git("config", "--global", "core.pager", configured)
    box.save()
    box.write("a.txt", "changed\n")
    box.env |= {"TERM": "xterm", "NO_COLOR": "1", **env}

    code, said = _at_a_terminal(box, "diff", answer="")

    assert code == 0
    assert shown in said.splitlines()
