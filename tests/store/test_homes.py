"""Where stores are: found again when something moved, never taken for empty."""

import os
import shutil

import pytest
from corpus.box import Box
from sealed import opened

from coderewind import Rewind, RewindError
from coderewind.store import home
from coderewind.wiring import find_workspace, make_store

from .look import assert_sound, store_dir


def _numbers(rewind: Rewind) -> list[int]:
    return [cp.number for cp in rewind.timeline().checkpoints]


@pytest.fixture
def saved(box: Box) -> Box:
    """A repository with two checkpoints."""
    rewind = opened(box)
    rewind.checkpoint("one")
    box.write("a.txt", "two\n")
    rewind.checkpoint("two")
    return box


def test_the_whole_rewind_home_may_move(
    saved: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.rename(saved.store_home, f"{saved.root}/elsewhere")
    monkeypatch.setenv("REWIND_HOME", f"{saved.root}/elsewhere")

    again = opened(saved)

    assert _numbers(again) == [2, 1]
    assert store_dir(again).startswith(f"{saved.root}/elsewhere/")
    assert not os.path.exists(saved.store_home)
    again.restore("1")
    assert saved.read("a.txt") == b"a\n"


def test_the_project_may_move(saved: Box) -> None:
    os.rename(saved.project, f"{saved.root}/moved")
    saved.project = f"{saved.root}/moved"

    again = opened(saved)

    assert _numbers(again) == [2, 1]
    again.restore("1")
    assert saved.read("a.txt") == b"a\n"
    assert_sound(again)


@pytest.mark.parametrize("step", ["rename", "about"])
def test_a_move_that_was_noticed_half_way(
    saved: Box, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Killed after the store's folder was renamed, before its description was written."""
    os.rename(saved.project, f"{saved.root}/moved")
    saved.project = f"{saved.root}/moved"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if step == "about":
            patch.setattr(home, "_write_about", killed)
        else:
            patch.setattr(os, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            opened(saved)

    again = opened(saved)
    assert _numbers(again) == [2, 1]
    again.restore("1")
    assert saved.read("a.txt") == b"a\n"


def test_a_move_that_two_notice_at_once(saved: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    os.rename(saved.project, f"{saved.root}/moved")
    saved.project = f"{saved.root}/moved"
    rename = os.rename

    def overtaken(source: bytes, target: bytes) -> None:
        rename(source, target)
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", overtaken)
        assert _numbers(opened(saved)) == [2, 1]


def test_project_and_home_moved_together(saved: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    os.rename(saved.project, f"{saved.root}/moved")
    saved.project = f"{saved.root}/moved"
    os.rename(saved.store_home, f"{saved.root}/elsewhere")
    monkeypatch.setenv("REWIND_HOME", f"{saved.root}/elsewhere")

    assert _numbers(opened(saved)) == [2, 1]


def test_a_copied_project_starts_its_own_timeline(saved: Box) -> None:
    shutil.copytree(saved.project, f"{saved.root}/copy", symlinks=True)

    copy = Rewind.open(f"{saved.root}/copy")

    assert _numbers(copy) == []
    assert _numbers(opened(saved)) == [2, 1]
    copy.close()


def test_the_object_folder_is_gone(saved: Box) -> None:
    """Not taken for an empty store."""
    shutil.rmtree(store_dir(opened(saved)))

    with pytest.raises(RewindError, match="gone"):
        opened(saved).timeline()


def test_two_make_the_same_store_at_once(plain: Box) -> None:
    workspace = find_workspace(os.fsencode(plain.project))
    one = make_store(workspace, None)
    other = make_store(workspace, None)

    assert one.git_dir == other.git_dir
    opened(plain).checkpoint("one")
    make_store(workspace, None)
    assert _numbers(opened(plain)) == [1]


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": 1}', "\xff", "[" * 100_000])
def test_a_damaged_description_is_said_and_written_anew(saved: Box, content: str) -> None:
    path = f"{os.fsdecode(opened(saved).engine.store.home)}/about.json"
    with open(path, "wb") as file:
        file.write(content.encode("latin-1"))

    with pytest.raises(RewindError, match=r"about\.json is damaged"):
        opened(saved)
    assert saved.rewind("init", "--yes").code == 0
    assert _numbers(opened(saved))[-2:] == [2, 1]


def test_a_store_of_a_newer_format_is_left_alone(saved: Box) -> None:
    path = f"{os.fsdecode(opened(saved).engine.store.home)}/about.json"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace('"format": "1"', '"format": "2"'))

    with pytest.raises(RewindError, match="format 2"):
        opened(saved)
    saved.rewind("init", "--yes", ok=False)
    with open(path, encoding="utf-8") as file:
        assert '"format": "2"' in file.read(), "init downgraded a newer store"


def test_a_store_begun_anew_does_not_list_what_is_gone(saved: Box) -> None:
    git_dir = store_dir(opened(saved))
    shutil.rmtree(git_dir)

    saved.rewind("init", "--yes")

    again = opened(saved)
    assert _numbers(again) == [1]
    again.checkpoint()
    assert _numbers(opened(saved)) == [2, 1]
    assert_sound(again)


@pytest.mark.parametrize("content", ['{"format": "2"}', "garbage"])
def test_a_store_that_cannot_be_read_does_not_stop_other_folders(
    saved: Box, content: str
) -> None:
    path = f"{os.fsdecode(opened(saved).engine.store.home)}/about.json"
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)
    saved.write(f"{saved.root}/other/file", "x")

    other = Rewind.open(f"{saved.root}/other")
    other.checkpoint()
    other.close()


@pytest.mark.parametrize("mode", home.MODES)
def test_init_finds_the_checkpoints_of_a_damaged_description(box: Box, mode: str) -> None:
    box.skip = {b".agent"}
    box.git_may_change = mode == "repo"
    box.rewind("init", "--mode", mode, "--yes")
    path = f"{os.fsdecode(opened(box).engine.store.home)}/about.json"
    with open(path, "w", encoding="utf-8") as file:
        file.write("garbage")

    box.rewind("init", "--yes")

    again = opened(box)
    assert again.engine.store.mode == mode
    assert _numbers(again)[-1] == 1


def test_a_locale_without_letters_finds_the_same_store(plain: Box) -> None:
    """The name of a store does not depend on how the locale reads the path."""
    os.rename(plain.project, f"{plain.root}/caf\u00e9")
    plain.project = f"{plain.root}/caf\u00e9"
    checkpoint = plain.save()
    plain.env |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    plain.write("a.txt", "changed")

    assert [item["id"] for item in plain.checkpoints()] == [checkpoint]
    plain.restore(checkpoint)
    assert plain.read("a.txt") == b"a\n"


def test_a_store_below_letters_that_the_locale_lacks(plain: Box) -> None:
    plain.env |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
                  "REWIND_HOME": f"{plain.root}/caf\u00e9"}
    checkpoint = plain.save()
    plain.write("a.txt", "changed")
    plain.restore(checkpoint)
    plain.env["LC_ALL"] = "C.UTF-8"

    plain.rewind("undo-restore")

    assert plain.read("a.txt") == b"changed"
