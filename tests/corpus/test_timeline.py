"""Going back and forth: undo, redo, undo-restore, labels, pins, selectors, retention."""

import os
import time
from collections.abc import Callable

import pytest

from .box import Box, rescue_of


def _states(box: Box, *contents: str) -> list[str]:
    ids = []
    for content in contents:
        box.write("a.txt", content)
        ids.append(box.save())
    return ids


def _now(box: Box) -> str:
    return box.read("a.txt").decode()


def test_undo_steps_back_again_and_again(either: Box) -> None:
    _states(either, "1", "2", "3")
    seen = []
    for _ in range(2):
        either.rewind("undo")
        seen.append(_now(either))

    assert seen == ["2", "1"]


def test_undo_at_the_oldest_checkpoint_says_so(either: Box) -> None:
    _states(either, "1", "2")
    either.rewind("undo")

    with either.expect_unchanged():
        assert either.rewind("undo", ok=False).code == 1


def test_undo_several_at_once(either: Box) -> None:
    _states(either, "1", "2", "3", "4")
    either.rewind("undo", "3")

    assert _now(either) == "1"


def test_undo_more_than_there_are(either: Box) -> None:
    _states(either, "1", "2")
    answer = either.rewind("undo", "9", ok=False)

    assert (answer.code, _now(either)) in ((1, "2"), (0, "1"))


def test_undo_of_unsaved_work_goes_to_the_newest_checkpoint(either: Box) -> None:
    _states(either, "1", "2")
    either.write("a.txt", "unsaved").write("new", "x")
    either.rewind("undo")
    assert _now(either) == "2"
    assert not either.exists("new")

    either.rewind("redo")
    assert _now(either) == "unsaved"
    assert either.read("new") == b"x"


def test_undo_skips_checkpoints_of_the_same_files(either: Box) -> None:
    _states(either, "1", "2", "2", "2")
    either.rewind("undo")

    assert _now(either) == "1"


def test_redo_goes_forward_as_far_as_undo_went_back(either: Box) -> None:
    _states(either, "1", "2", "3")
    either.rewind("undo")
    either.rewind("undo")
    seen = []
    for _ in range(2):
        either.rewind("redo")
        seen.append(_now(either))

    assert seen == ["2", "3"]
    assert either.rewind("redo", ok=False).code == 1


def test_redo_several_at_once(either: Box) -> None:
    _states(either, "1", "2", "3")
    either.rewind("undo", "2")
    either.rewind("redo", "2")

    assert _now(either) == "3"


def test_redo_without_undo(either: Box) -> None:
    _states(either, "1", "2")

    assert either.rewind("redo", ok=False).code == 1


def test_undo_redo_undo_redo(either: Box) -> None:
    _states(either, "1", "2", "3")
    seen = []
    for verb in ("undo", "redo", "undo", "undo", "redo", "redo"):
        either.rewind(verb)
        seen.append(_now(either))

    assert seen == ["2", "3", "2", "1", "2", "3"]


def test_a_new_restore_clears_redo_and_loses_nothing(either: Box) -> None:
    one, _, three = _states(either, "1", "2", "3")
    either.rewind("undo")
    either.restore(one)

    assert either.rewind("redo", ok=False).code == 1
    assert _now(either) == "1"
    either.restore(three)
    assert _now(either) == "3"


def test_redo_survives_new_work(either: Box) -> None:
    """The edit made in between is in the rescue."""
    _states(either, "1", "2")
    either.rewind("undo")
    either.write("b.txt", "new work")
    answer = either.rewind("redo")

    assert _now(either) == "2"
    either.restore(rescue_of(answer))
    assert either.read("b.txt") == b"new work"


def test_undo_after_a_restore(either: Box) -> None:
    one, _ = _states(either, "1", "2")
    either.write("a.txt", "unsaved")
    either.restore(one)
    either.rewind("undo-restore")

    assert _now(either) == "unsaved"


def test_undo_restore_several_one_by_one(either: Box) -> None:
    one, two, three = _states(either, "1", "2", "3")
    either.write("a.txt", "unsaved")
    for checkpoint in (one, two, three):
        either.restore(checkpoint)
    seen = []
    for _ in range(3):
        either.rewind("undo-restore")
        seen.append(_now(either))

    assert seen == ["2", "1", "unsaved"]
    with either.expect_unchanged():
        assert either.rewind("undo-restore", ok=False).code == 1


def test_undo_restore_without_a_restore(either: Box) -> None:
    _states(either, "1")

    assert either.rewind("undo-restore", ok=False).code == 1


def test_work_done_after_a_restore_is_not_lost_by_undoing_it(either: Box) -> None:
    one, _ = _states(either, "1", "2")
    either.restore(one)
    either.write("a.txt", "work after")
    answer = either.rewind("undo-restore")
    assert _now(either) == "2"

    either.restore(rescue_of(answer))
    assert _now(either) == "work after"


def test_the_rescue_is_a_checkpoint_like_any_other(either: Box) -> None:
    (one,) = _states(either, "1")
    either.write("a.txt", "unsaved").write("new", "x", 0o600).mkdir("empty")
    before = either.picture()
    rescue = rescue_of(either.restore(one))

    assert rescue in {item["id"] for item in either.checkpoints("--all")}
    either.restore(rescue)
    either.assert_like(before)


def test_every_state_ever_left_is_still_listed(either: Box) -> None:
    ids = _states(either, "1", "2", "3")
    either.rewind("undo", "2")
    either.write("a.txt", "4")
    ids.append(either.save())
    either.restore(ids[1])

    assert set(ids) <= {item["id"] for item in either.checkpoints("--all")}
    for checkpoint, content in zip(ids, "1234", strict=True):
        either.restore(checkpoint)
        assert _now(either) == content


def test_restoring_single_paths(either: Box) -> None:
    either.write("x", "1").write("sub/y", "1")
    checkpoint = either.save()
    either.write("x", "2").write("sub/y", "2").write("sub/new", "2").write("a.txt", "2")
    after = either.picture()
    either.restore(checkpoint, "--path", "sub")

    assert either.read("sub/y") == b"1"
    assert not either.exists("sub/new")
    assert either.read("x") == b"2"
    assert _now(either) == "2"
    either.rewind("undo-restore")
    either.assert_like(after)


def test_restoring_several_paths_from_a_subfolder(box: Box) -> None:
    """Paths are relative to where one stands, as in git."""
    box.write("x", "1").write("sub/y", "1").write("sub/z", "1")
    checkpoint = box.save()
    for name in ("x", "sub/y", "sub/z"):
        box.write(name, "2")
    process = box.start(
        "restore", checkpoint, "--yes", "--path", "y", "--path", "../x", cwd=box.path("sub")
    )
    _, error = process.communicate(timeout=60)

    assert process.returncode == 0, error
    assert [box.read(name) for name in ("x", "sub/y", "sub/z")] == [b"1", b"1", b"2"]


def test_restoring_a_single_deleted_path(either: Box) -> None:
    checkpoint = either.save()
    either.remove("sub").write("a.txt", "changed")
    either.restore(checkpoint, "--path", "sub/b.txt")

    assert either.read("sub/b.txt") == b"b\n"
    assert _now(either) == "changed"


@pytest.mark.parametrize("now", ["file", "out", "here", "up", "dangling", "pipe"])
def test_restoring_a_single_path_below_what_is_no_folder_any_more(either: Box, now: str) -> None:
    either.write("sub/deep/c.txt", "c\n")
    checkpoint = either.save()
    either.remove("sub").mkdir(f"{either.root}/outside/deep")
    if now == "file":
        either.write("sub", "a file")
    elif now == "pipe":
        os.mkfifo(either.path("sub"))
    else:
        links = {"out": f"{either.root}/outside", "here": ".", "up": "..", "dangling": "nowhere"}
        either.symlink("sub", links[now])
    after = either.picture()

    either.restore(checkpoint, "--path", "sub/deep/c.txt")

    assert either.read("sub/deep/c.txt") == b"c\n"
    assert os.listdir(f"{either.root}/outside/deep") == []
    assert not either.exists("sub/b.txt")
    either.rewind("undo-restore")
    either.assert_like(after)


def test_a_path_beyond_a_link_is_not_known(either: Box) -> None:
    either.symlink("link", "sub")
    checkpoint = either.save()
    either.write("sub/b.txt", "changed")

    answer = either.restore(checkpoint, "--path", "link/b.txt", ok=False)

    assert answer.code == 1
    assert "neither in the folder nor in the checkpoint" in answer.said


@pytest.mark.parametrize("path", ["later", "later/deep", "later/deep/file"])
def test_restoring_a_single_path_that_appeared_later(either: Box, path: str) -> None:
    checkpoint = either.save()
    either.write("later/deep/file", "x").write("a.txt", "changed")
    after = either.picture()
    either.restore(checkpoint, "--path", path)

    assert not either.exists(path)
    assert _now(either) == "changed"
    either.rewind("undo-restore")
    either.assert_like(after)


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "nowhere/at/all"])
def test_restoring_a_path_that_is_none(either: Box, path: str) -> None:
    checkpoint = either.save()
    either.write("a.txt", "changed")

    with either.expect_unchanged():
        assert either.restore(checkpoint, "--path", path, ok=False).code in (1, 2)


def test_code_only_restores_files(either: Box) -> None:
    one, _ = _states(either, "1", "2")
    either.restore(one, "--code-only")

    assert _now(either) == "1"


def test_context_only_leaves_files_and_says_why(either: Box) -> None:
    one, _ = _states(either, "1", "2")

    with either.expect_unchanged():
        answer = either.restore(one, "--context-only", ok=False)

    assert "session" in answer.said or "conversation" in answer.said


# Naming a checkpoint.


def test_selectors(either: Box) -> None:
    one, two, three = _states(either, "1", "2", "3")
    listed = {item["id"]: item for item in either.checkpoints()}
    either.rewind("label", two, "the middle")
    for selector, content in [
        (str(listed[one]["number"]), "1"),
        (three, "3"),
        ("the middle", "2"),
    ]:
        either.restore(selector)
        assert _now(either) == content, selector


@pytest.mark.parametrize(("selector", "content"), [("@", "3"), ("@-1", "2"), ("@-2", "1")])
def test_counting_from_the_latest(either: Box, selector: str, content: str) -> None:
    _states(either, "1", "2", "3")
    either.restore(selector)

    assert _now(either) == content


def test_a_snapshot_id_and_its_prefix(either: Box) -> None:
    one, _ = _states(either, "1", "2")
    snapshot = next(item["snapshot"] for item in either.checkpoints() if item["id"] == one)
    for selector in (snapshot, snapshot[:12]):
        either.write("a.txt", "x")
        either.restore(selector)
        assert _now(either) == "1"


@pytest.mark.parametrize("age", ["0 seconds ago", "1 second ago"])
def test_an_age(either: Box, age: str) -> None:
    """The newest checkpoint that old; which of the two it is depends on this machine's speed."""
    import time

    _states(either, "1")
    time.sleep(1.1)
    _states(either, "2")
    either.write("a.txt", "x")
    either.restore(age)

    assert _now(either) in ("1", "2")


@pytest.mark.parametrize(
    "selector",
    [
        "999",
        "0",
        "-1",
        "@-99",
        "@-",
        "@x",
        "no such label",
        "",
        " ",
        "2 years ago",
        "ago",
        "deadbeef",
        "../..",
        "HEAD",
        "\n",
        "9" * 5000,
        "@--1",
    ],
)
def test_a_selector_that_names_nothing(either: Box, selector: str) -> None:
    _states(either, "1", "2")

    with either.expect_unchanged():
        answer = either.rewind("restore", "--yes", "--", selector, ok=False)

    assert answer.code in (1, 2)
    assert either.rewind("show", "--", selector, ok=False).code in (1, 2)


def test_an_ambiguous_label_lists_the_candidates(either: Box) -> None:
    one, two, _ = _states(either, "1", "2", "3")
    either.rewind("label", one, "twice")
    either.rewind("label", two, "twice")
    listed = {item["id"]: str(item["number"]) for item in either.checkpoints()}

    with either.expect_unchanged():
        answer = either.restore("twice", ok=False)

    assert answer.code == 1
    assert listed[one] in answer.said
    assert listed[two] in answer.said


def test_no_checkpoint_yet(either: Box) -> None:
    for command in (["restore", "@", "--yes"], ["undo"], ["redo"], ["undo-restore"], ["show", "@"]):
        with either.expect_unchanged():
            assert either.rewind(command[0], *command[1:], ok=False).code == 1, command


LABELS = {
    "newlines": "two\nlines\n\nand more\n",
    "long": "x" * 8192,
    "emoji": "🚀 ünïcödé 日本語",
    "dash": "-rf",
    "option": "--yes",
    "quotes": '"it\'s" `$(x)` \\n',
    "json": '{"id": "x", "number": 1}',
    "record": "\n\n{}\nparent 0000\n\ntree 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "trailer": "Signed-off-by: x <x@example.org>\nRewind-Id: 1",
    "spaces": "  leading and trailing  ",
    "escape": "\x1b[31mred\x1b[0m\x07",
    "tab": "a\tb",
    "comment": "# not a comment",
    "number-like": "12",
    "at": "@",
    "bidi": "\u202eabc\u2066",
    "crlf": "a\r\nb",
    "single-surrogate-free": "\ufffe\uffff",
    "markup": "[bold]x[/bold] [/]",
    "percent": "%s %H %n",
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_may_hold_anything(either: Box, name: str) -> None:
    label = LABELS[name]
    (one,) = _states(either, "1")
    either.rewind("label", "--", one, label)
    two = either.save(f"--message={label}")
    listed = {item["id"]: item["label"] for item in either.checkpoints()}

    assert listed == {one: label, two: label}
    human = either.start("-C", either.project, "list")
    out, error = human.communicate(timeout=60)
    assert human.returncode == 0, error
    assert b"\x1b[31m" not in out, "a label must not drive the terminal"


def test_a_label_as_bytes_that_are_no_text(either: Box) -> None:
    either.rewind("save", "--message=\udcff\udcfe", ok=False)
    either.rewind("list")


def test_a_description_is_a_label(either: Box) -> None:
    checkpoint = either.save("before the refactoring")

    assert either.checkpoints()[0]["label"] == "before the refactoring"
    either.write("a.txt", "changed")
    either.restore("before the refactoring")
    assert either.checkpoints("--all")[-1]["id"] == checkpoint
    assert _now(either) == "a\n"


def test_a_label_can_be_changed(either: Box) -> None:
    checkpoint = either.save("first")
    either.rewind("label", checkpoint, "second")

    assert either.checkpoints()[0]["label"] == "second"
    assert either.rewind("show", "first", ok=False).code == 1
    either.rewind("show", "second")


# Lists.


def test_the_shape_of_a_listed_checkpoint(either: Box) -> None:
    answer = either.rewind("save", "x")
    (item,) = either.checkpoints()

    wanted: dict[str, type | tuple[type, ...]] = {
        "id": str,
        "number": int,
        "time": (int, float),
        "kind": str,
        "label": str,
        "prompt": str,
        "agent": str,
        "session": str,
        "entry": str,
        "files": int,
        "pinned": bool,
        "snapshot": str,
        "current": bool,
    }
    for key, kind in wanted.items():
        assert isinstance(item[key], kind), key
    assert item["kind"] == "save"
    for key in ("id", "number", "snapshot"):
        assert answer[key] == item[key], key
    assert isinstance(answer["reused"], bool)
    assert answer["coverage"] == []


def test_newest_first_numbers_rising_times_not_falling(either: Box) -> None:
    ids = _states(either, "1", "2", "3")
    items = either.checkpoints()

    assert [item["id"] for item in items] == ids[::-1]
    numbers = [item["number"] for item in items]
    assert numbers == sorted(set(numbers), reverse=True)
    assert [item["time"] for item in items] == sorted((i["time"] for i in items), reverse=True)


def test_a_limit(either: Box) -> None:
    ids = _states(either, "1", "2", "3")

    assert [item["id"] for item in either.checkpoints("--limit", "2")] == ids[:0:-1]


def test_where_the_worktree_stands_now(either: Box) -> None:
    one, two, three = _states(either, "1", "2", "3")
    assert [i["id"] for i in either.checkpoints() if i["current"]] == [three]
    either.restore(two)
    assert [i["id"] for i in either.checkpoints() if i["current"]] == [two]
    assert one != two


def test_ids_stay_valid(either: Box) -> None:
    ids = _states(either, *[str(number) for number in range(8)])
    either.rewind("gc")
    either.rewind("label", ids[0], "x")
    either.rewind("pin", ids[1])

    listed = {item["id"] for item in either.checkpoints()}
    for number, checkpoint in enumerate(ids):
        assert checkpoint in listed
        either.restore(checkpoint)
        assert _now(either) == str(number)


def test_files_counts_what_changed(either: Box) -> None:
    either.save()
    either.write("a.txt", "x").remove("sub/b.txt").write("c", "1").write("d", "2")
    either.save()

    assert either.checkpoints()[0]["files"] == 4


def test_list_without_a_store(either: Box) -> None:
    answer = either.rewind("list", ok=False)

    assert answer.code == 1 or answer["checkpoints"] == []


# Retention.


def test_a_pin_protects_from_retention(either: Box) -> None:
    ids = _states(either, "1", "2", "3", "4", "5")
    either.rewind("pin", ids[1])
    assert [i["id"] for i in either.checkpoints() if i["pinned"]] == [ids[1]]
    either.rewind("gc", "--keep", "1")

    listed = {item["id"] for item in either.checkpoints("--all")}
    assert {ids[1], ids[4]} <= listed
    assert not {ids[0], ids[2]} & listed
    either.restore(ids[1])
    assert _now(either) == "2"
    assert either.restore(ids[0], ok=False).code == 1
    either.rewind("doctor")


def test_unpinned_again(either: Box) -> None:
    ids = _states(either, "1", "2", "3")
    either.rewind("pin", ids[0])
    either.rewind("unpin", ids[0])
    either.rewind("gc", "--keep", "1")

    assert ids[0] not in {item["id"] for item in either.checkpoints("--all")}


def test_undo_states_stay(either: Box) -> None:
    ids = _states(either, "1", "2", "3")
    either.write("a.txt", "unsaved")
    either.restore(ids[2])
    either.rewind("gc", "--keep", "1")
    either.rewind("undo-restore")

    assert _now(either) == "unsaved"


def test_saving_goes_on_after_retention(either: Box) -> None:
    _states(either, *"123456")
    either.rewind("gc", "--keep", "2")
    (seven,) = _states(either, "7")
    either.write("a.txt", "x")
    either.restore(seven)

    assert _now(either) == "7"
    numbers = [item["number"] for item in either.checkpoints()]
    assert len(set(numbers)) == len(numbers)
    assert max(numbers) >= 7


def test_the_configured_maximum(either: Box) -> None:
    either.rewind("init", "--yes")
    either.rewind("config", "retention.maxSnapshots", "3")
    ids = _states(either, *"123456")
    either.rewind("gc")

    listed = {item["id"] for item in either.checkpoints("--all")}
    assert set(ids[3:]) <= listed
    assert ids[0] not in listed


def test_retention_frees_space(either: Box) -> None:
    import os

    def size() -> int:
        return sum(
            os.lstat(os.path.join(folder, name)).st_size
            for folder, _, names in os.walk(either.store())
            for name in names
        )

    for _ in range(4):
        either.write("blob", os.urandom(200_000))
        either.save()
    before = size()
    either.rewind("gc", "--keep", "1")

    assert size() < before - 300_000


def test_a_state_that_comes_back_is_recognised(either: Box) -> None:
    """Made again by hand, and later than within the same second."""
    one, _ = _states(either, "1", "2")
    time.sleep(1.1)
    either.write("a.txt", "1")

    assert [item["id"] for item in either.checkpoints() if item["current"]] == [one]
    three = either.save()
    snapshots = {item["id"]: item["snapshot"] for item in either.checkpoints()}
    assert snapshots[one] == snapshots[three]


def test_restoring_what_is_there_already_does_nothing(either: Box) -> None:
    one, _, _ = _states(either, "1", "2", "1")
    before = either.checkpoints()

    answer = either.restore(one)

    assert (answer["done"], answer["rescue"]) == (True, None)
    assert either.checkpoints() == before


def test_list_marks_nothing_after_an_unsaved_edit(either: Box) -> None:
    _states(either, "1", "2")
    either.write("a.txt", "unsaved")

    assert not any(item["current"] for item in either.checkpoints())


def test_undo_takes_back_a_change_of_modes_alone(either: Box) -> None:
    _states(either, "1", "2")
    os.chmod(either.path("a.txt"), 0o600)
    either.save()
    either.rewind("undo")

    assert (_now(either), either.mode("a.txt")) == ("2", 0o644)


def _a_pipe(box: Box) -> None:
    os.mkfifo(box.path("pipe"))


def _a_repository(box: Box) -> None:
    box.mkdir("inner")
    box.init(where=box.path("inner"))
    box.write("inner/file", "inside\n")


@pytest.mark.parametrize("appear", [_a_pipe, _a_repository], ids=["a pipe", "a repository"])
def test_undo_goes_on_past_a_state_that_restores_leave_something_in(
    plain: Box, appear: Callable[[Box], None]
) -> None:
    _states(plain, "1", "2", "3")
    appear(plain)
    seen = []
    for _ in range(2):
        plain.rewind("undo", check_git=False)
        seen.append(_now(plain))

    assert seen == ["2", "1"]
    assert plain.rewind("undo", ok=False, check_git=False).code == 1, "there is no earlier state"
