"""What a filter leaves out is said, and never deleted or overwritten."""

import json
import os

import pytest

from .box import Box, coverage

IN_A_REPOSITORY = [
    "node_modules",
    ".venv",
    "venv",
    ".tox",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".cache",
]
IN_A_PLAIN_FOLDER = [*IN_A_REPOSITORY, "env", ".env", "dist", "build"]


def _configure(box: Box, settings: dict[str, object]) -> None:
    """As a user writes it by hand."""
    os.makedirs(box.store_home, exist_ok=True)
    box.write(f"{box.store_home}/config.json", json.dumps(settings))


def _left_out(answer: object) -> set[bytes]:
    return {path.rstrip(b"/") for path in coverage(answer)}  # type: ignore[arg-type]


def test_a_big_untracked_file_is_left_out_and_said_so(either: Box) -> None:
    _configure(either, {"filters": {"maxFileBytes": 1000}})
    either.write("big", b"x" * 1001).write("just", b"x" * 1000)

    answer = either.rewind("save")

    assert _left_out(answer) == {b"big"}
    assert "big" in either.rewind("status").said


def test_a_big_file_left_out_is_not_overwritten(either: Box) -> None:
    _configure(either, {"filters": {"maxFileBytes": 1000}})
    either.write("big", b"x" * 1001)
    checkpoint = either.save()
    either.write("big", b"y" * 2000).write("a.txt", "changed")

    answer = either.restore(checkpoint, ok=False)

    assert either.read("big") == b"y" * 2000
    assert either.read("a.txt") == b"a\n"
    assert "big" in answer.said


def test_a_big_file_left_out_that_is_gone_is_said_so(plain: Box) -> None:
    plain.rewind("config", "filters.maxFileBytes", "10")
    plain.write("big", "x" * 11)
    first = plain.save()
    plain.remove("big")

    kept = plain.restore(first, "--dry-run")["plan"]["kept"]

    assert kept == [{"path": "big", "why": "is gone and does not come back, "
                                           "it was not captured then: too-large"}]


def test_a_big_file_that_appeared_later_is_not_deleted(either: Box) -> None:
    _configure(either, {"filters": {"maxFileBytes": 1000}})
    checkpoint = either.save()
    either.write("later/big", b"y" * 2000).write("later/small", "x").write("a.txt", "changed")

    answer = either.restore(checkpoint, ok=False)

    assert either.read("later/big") == b"y" * 2000
    assert not either.exists("later/small")
    assert either.read("a.txt") == b"a\n"
    assert "later/big" in answer.said


def test_a_small_file_that_grew_big_comes_back_and_the_big_one_is_not_lost(either: Box) -> None:
    """Too big for the rescue, unless the rescue makes an exception: never simply overwritten."""
    _configure(either, {"filters": {"maxFileBytes": 1000}})
    either.write("grows", "small")
    checkpoint = either.save()
    either.write("grows", b"y" * 2000).write("a.txt", "changed")

    answer = either.restore(checkpoint, ok=False)

    assert either.read("a.txt") == b"a\n"
    if either.read("grows") == b"y" * 2000:
        assert answer.code != 0 or "grows" in answer.said
    else:
        assert either.read("grows") == b"small"
        either.rewind("undo-restore")
        assert either.read("grows") == b"y" * 2000


def test_a_big_file_in_the_way_of_a_folder_is_not_lost(either: Box) -> None:
    _configure(either, {"filters": {"maxFileBytes": 1000}})
    checkpoint = either.save()
    either.remove("sub").write("sub", b"y" * 2000)

    either.restore(checkpoint, ok=False)

    if either.picture()[b"sub"].type == "directory":
        either.rewind("undo-restore")
    assert either.read("sub") == b"y" * 2000


def test_a_big_tracked_file_is_captured(box: Box) -> None:
    _configure(box, {"filters": {"maxFileBytes": 1000}})
    box.write("big", b"x" * 5000).commit()

    box.round_trip(lambda: box.write("big", b"y" * 7000))


def test_no_limit_when_zero(either: Box) -> None:
    _configure(either, {"filters": {"maxFileBytes": 0, "maxDirFiles": 0}})
    either.write("big", b"x" * 5000)

    either.round_trip(lambda: either.write("big", b"y" * 7000))


def test_the_limit_can_be_set_by_the_command(either: Box) -> None:
    either.save()
    either.rewind("config", "filters.maxFileBytes", "1000")
    either.write("big", b"x" * 2000)

    assert _left_out(either.rewind("save")) == {b"big"}
    assert "1000" in either.rewind("config", "filters.maxFileBytes").said


@pytest.mark.parametrize("name", IN_A_REPOSITORY)
def test_an_untracked_dependency_folder_in_a_repository(box: Box, name: str) -> None:
    box.write(f"{name}/x/file", "then").write(f"web/{name}/file", "then")
    answer = box.rewind("save")
    assert _left_out(answer) == {name.encode(), f"web/{name}".encode()}
    box.write(f"{name}/x/file", "now").write(f"{name}/new", "now").remove(f"web/{name}")
    box.write("a.txt", "changed")

    box.restore(str(answer["id"]), ok=False)

    assert box.read(f"{name}/x/file") == b"now"
    assert box.read(f"{name}/new") == b"now"
    assert box.read("a.txt") == b"a\n"


@pytest.mark.parametrize("name", ["dist", "build", "env", ".env"])
def test_folders_of_other_names_are_captured_in_a_repository(box: Box, name: str) -> None:
    box.write(f"{name}/file", "then")

    box.round_trip(lambda: box.write(f"{name}/file", "now"))


@pytest.mark.parametrize("name", IN_A_PLAIN_FOLDER)
def test_a_dependency_folder_in_a_plain_folder(plain: Box, name: str) -> None:
    plain.write(f"{name}/file", "then")
    answer = plain.rewind("save")
    assert _left_out(answer) == {name.encode()}
    plain.write(f"{name}/file", "now").write("a.txt", "changed")

    plain.restore(str(answer["id"]), ok=False)

    assert plain.read(f"{name}/file") == b"now"
    assert plain.read("a.txt") == b"a\n"


def test_a_dependency_folder_that_appeared_later_is_not_deleted(either: Box) -> None:
    checkpoint = either.save()
    either.write("node_modules/x/index.js", "installed\n").write("package.json", "{}")

    either.restore(checkpoint, ok=False)

    assert either.read("node_modules/x/index.js") == b"installed\n"
    assert not either.exists("package.json")


def test_a_tracked_dependency_folder_is_captured(box: Box) -> None:
    box.write("node_modules/x/index.js", "1").commit()

    box.round_trip(lambda: box.write("node_modules/x/index.js", "2"))


@pytest.mark.parametrize("name", [".env", "node_modules", "venv", "build", ".cache"])
def test_a_file_with_the_name_of_a_filtered_folder_is_captured(either: Box, name: str) -> None:
    either.write(name, "TOKEN=1\n", 0o600)

    either.round_trip(lambda: either.write(name, "TOKEN=2\n"))


def test_a_symlink_with_the_name_of_a_filtered_folder_is_captured(either: Box) -> None:
    either.symlink("node_modules", "../elsewhere")

    either.round_trip(lambda: either.remove("node_modules"))


def test_a_filtered_folder_in_the_way_of_a_file_is_not_lost(either: Box) -> None:
    either.write("venv", "a file")
    checkpoint = either.save()
    either.remove("venv").write("venv/bin/python", "x")

    either.restore(checkpoint, ok=False)

    if either.picture()[b"venv"].type == "file":
        either.rewind("undo-restore")
    assert either.read("venv/bin/python") == b"x"


def test_a_repository_in_a_filtered_folder_stays(either: Box) -> None:
    checkpoint = either.save()
    either.mkdir("node_modules/x").init(where=either.path("node_modules/x"))
    either.write("node_modules/x/file", "1").write("a.txt", "changed")

    either.restore(checkpoint, ok=False)

    assert either.read("node_modules/x/file") == b"1"
    assert either.exists("node_modules/x/.git/HEAD")


def test_own_list_of_folders(either: Box) -> None:
    _configure(either, {"filters": {"directories": ["data"]}})
    either.write("data/file", "then").write("node_modules/file", "then")
    answer = either.rewind("save")
    assert _left_out(answer) == {b"data"}
    either.write("data/file", "now").write("node_modules/file", "now")

    either.restore(str(answer["id"]), ok=False)

    assert either.read("data/file") == b"now"
    assert either.read("node_modules/file") == b"then"


def test_an_empty_list_of_folders(either: Box) -> None:
    _configure(either, {"filters": {"directories": []}})
    either.write("node_modules/file", "then").write("venv/file", "then")

    either.round_trip(lambda: either.remove("node_modules").write("venv/file", "now"))


@pytest.mark.parametrize("how", ["preset", "maxDirFiles"])
def test_folders_of_very_many_files_are_left_out_when_asked(either: Box, how: str) -> None:
    _configure(
        either, {"filters": {"preset": "smart"} if how == "preset" else {"maxDirFiles": 200}}
    )
    for number in range(210):
        either.write(f"crowd/{number}", str(number))
    for number in range(150):
        either.write(f"few/{number}", str(number))
    answer = either.rewind("save")
    assert _left_out(answer) == {b"crowd"}
    either.write("crowd/1", "now").write("crowd/new", "now").write("few/1", "now")

    either.restore(str(answer["id"]), ok=False)

    assert either.read("crowd/1") == b"now"
    assert either.read("crowd/new") == b"now"
    assert either.read("few/1") == b"1"


def test_the_smart_preset_leaves_out_files_over_ten_mebibytes(either: Box) -> None:
    _configure(either, {"filters": {"preset": "smart"}})
    either.write("big", b"x" * (10 * 1024 * 1024 + 1)).write("fits", b"x" * 1024 * 1024)
    answer = either.rewind("save")
    assert _left_out(answer) == {b"big"}
    either.write("big", "now").write("fits", "now")

    either.restore(str(answer["id"]), ok=False)

    assert either.read("big") == b"now"
    assert either.read("fits") == b"x" * 1024 * 1024


def test_a_filter_tightened_between_save_and_restore(either: Box) -> None:
    """What a checkpoint holds comes back, whatever today's filters say."""
    either.write("big", b"x" * 5000).write("data/file", "then")
    before = either.picture()
    checkpoint = either.save()
    _configure(either, {"filters": {"maxFileBytes": 1000, "directories": ["data"]}})
    either.remove("big").remove("data")

    either.restore(checkpoint)

    either.assert_like(before)


def test_a_filter_loosened_between_save_and_restore(either: Box) -> None:
    """What the checkpoint left out is not taken for something that appeared later."""
    _configure(either, {"filters": {"maxFileBytes": 1000, "directories": ["data"]}})
    either.write("big", b"x" * 5000).write("data/file", "then")
    checkpoint = either.save()
    _configure(either, {})
    either.write("a.txt", "changed")

    either.restore(checkpoint, ok=False)

    assert either.read("big") == b"x" * 5000
    assert either.read("data/file") == b"then"
    assert either.read("a.txt") == b"a\n"


def test_a_captured_file_stays_captured_when_it_grows_over_the_limit(either: Box) -> None:
    """ "A path once captured stays captured", or it is in coverage; never dropped in silence."""
    _configure(either, {"filters": {"maxFileBytes": 1000}})
    either.write("grows", "small")
    either.save()
    either.write("grows", b"y" * 2000)
    answer = either.rewind("save")
    if b"grows" in coverage(answer):
        return
    either.write("grows", "other")
    either.restore(str(answer["id"]))

    assert either.read("grows") == b"y" * 2000
