"""/fork, /tree and /rewind in the real Pi, over RPC: each option does what it says, exactly."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from coderewind.wiring import open_engine

from .fake_model import Json, script, text
from .pi import NAV, Pi, PiRoom

pytestmark = pytest.mark.agent

Tree = dict[str, bytes]


def three_prompts(room: PiRoom, pi: Pi) -> list[Tree]:
    """Three prompts, each with a change; the files as they were at each of them, and at last."""
    trees = []
    for number in (1, 2, 3):
        trees.append(room.tree())
        steps = [room.write("a.txt", f"{number}\n"), room.shell(f"echo x > by-shell-{number}")]
        if number == 2:
            steps.append(room.shell("rm old.txt"))
        pi.prompt(f"prompt {number} " + script(steps, text("done")))
    return [*trees, room.tree()]


def choose(pi: Pi, *wanted: str) -> list[Json]:
    """Pick these options in the next dialogs, by how they begin; the dialogs, as they come."""
    left = list(wanted)
    seen: list[Json] = []

    def answer(dialog: Json) -> str | None:
        seen.append(dialog)
        if not left:
            return None
        word = left.pop(0)
        found = [o for o in dialog["options"] if o.startswith(word) or word in o]
        assert found, (word, dialog)
        return str(found[0])

    pi.answer = answer
    return seen


@pytest.mark.parametrize("number", [0, 1, 2])
def test_fork_restores_exactly_the_files_of_a_prompt(pi_room: PiRoom, number: int) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        choose(pi, "Restore all")

        pi.call("fork", entryId=pi.entries("user")[number]["id"])

        assert pi_room.tree() == trees[number]
        assert len(pi.entries("user")) == number


def test_fork_offers_what_the_seed_names(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        three_prompts(pi_room, pi)
        dialogs = choose(pi, "Code only")
        pi.call("fork", entryId=pi.entries("user")[1]["id"])
        pi.call("fork", entryId=pi.entries("user")[1]["id"])

    full = ["Conversation only (keep current files)", "Restore all (files + conversation)",
            "Code only (restore files, keep conversation)"]
    assert [d["options"] for d in dialogs] == [full, [*full, "Undo last file rewind"]]


def test_fork_with_conversation_only_leaves_the_files(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        choose(pi, "Conversation only")

        pi.call("fork", entryId=pi.entries("user")[1]["id"])

        assert pi_room.tree() == trees[3]
        assert len(pi.entries("user")) == 1
        assert [e["data"].get("current") for e in pi.entries(kind="rewind-op")] == [0]


def test_fork_with_code_only_keeps_all_messages(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        file, entries = pi.state()["sessionFile"], pi.entries()
        choose(pi, "Code only")

        answer = pi.call("fork", entryId=pi.entries("user")[0]["id"])

        assert answer["data"]["cancelled"] is True
        assert pi_room.tree() == trees[0]
        assert pi.state()["sessionFile"] == file
        assert pi.entries()[: len(entries)] == entries


def test_the_undo_of_a_fork_lives_in_the_child(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        choose(pi, "Restore all")
        pi.call("fork", entryId=pi.entries("user")[1]["id"])
        parent = pi.entries()

        choose(pi, "Undo last file rewind")
        answer = pi.call("fork", entryId=pi.entries("user")[0]["id"])

        assert answer["data"]["cancelled"] is True
        assert pi_room.tree() == trees[3]
        assert pi.entries()[: len(parent)] == parent


def test_a_cancelled_dialog_changes_nothing(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        entries = pi.entries()

        answer = pi.call("fork", entryId=pi.entries("user")[0]["id"])

        assert answer["data"]["cancelled"] is True
        assert (pi_room.tree(), pi.entries()) == (trees[3], entries)


def test_a_fork_of_a_fork_finds_the_points_of_its_grandparent(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        grandparent = pi.state()["sessionFile"]
        for _ in range(2):
            choose(pi, "Conversation only")
            pi.call("clone")
            pi.prompt("more")
        choose(pi, "Restore all")

        pi.call("fork", entryId=pi.entries("user")[1]["id"])

        assert pi_room.tree() == trees[1]
        assert pi.state()["sessionFile"] != grandparent


def test_points_are_found_when_the_parent_file_is_gone(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        parent = pi.state()["sessionFile"]
        pi.call("clone")
        child = pi.state()["sessionFile"]
        pi.call("clone")
        grandchild = pi.state()["sessionFile"]
    for path in (parent, child):
        pi_room.home.joinpath(path).unlink()
    with pi_room.open("--session", grandchild) as pi:
        choose(pi, "Restore all")

        pi.call("fork", entryId=pi.entries("user")[1]["id"])

        assert pi_room.tree() == trees[1]


# ---- /rewind


def test_rewind_puts_files_and_conversation_back(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        users = pi.entries("user")
        dialogs = choose(pi, 'before "prompt 2', "Files + conversation")

        pi.prompt("/rewind")
        leaf = pi.leaf()

        assert pi_room.tree() == trees[1]
        assert pi.shown("set_editor_text")[-1].startswith("prompt 2 ")
        preview = dialogs[1]["title"]
        assert "change a.txt" in preview and "create old.txt" in preview
        assert "delete by-shell-3" in preview
        file = pi.state()["sessionFile"]
    with pi_room.open("--session", file) as pi:
        assert pi.leaf() == leaf
        pi.prompt("and now")
        assert pi_room.model.heard()[-2:] == ["A:done", "U:and now"]
        assert users[2]["id"] in [e["id"] for e in pi.entries("user")]


def test_rewind_puts_files_back_and_leaves_the_conversation(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        entries = pi.entries()
        choose(pi, 'before "prompt 3', "Files only")

        pi.prompt("/rewind")

        assert pi_room.tree() == trees[2]
        assert pi.entries()[: len(entries)] == entries
        assert pi.entries()[len(entries)]["parentId"] == entries[-1]["id"]


def test_rewind_puts_the_conversation_back_and_leaves_the_files(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        choose(pi, 'before "prompt 2', "Conversation only")

        pi.prompt("/rewind")
        pi.prompt("and now")

        assert pi_room.tree() == trees[3]
        assert pi_room.model.heard()[-1] == "U:and now"
        assert "U:prompt 2" not in pi_room.model.heard()


def test_rewinds_are_undone_and_redone_over_several_levels(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        for number in (3, 2, 1):
            choose(pi, f'before "prompt {number}', "Files only")
            pi.prompt("/rewind")
        seen = [pi_room.tree()]
        for _ in range(3):
            choose(pi, "↩ Undo last rewind")
            pi.prompt("/rewind")
            seen.append(pi_room.tree())
        for _ in range(2):
            choose(pi, "↪ Redo")
            pi.prompt("/rewind")
            seen.append(pi_room.tree())

    assert seen == [trees[0], trees[1], trees[2], trees[3], trees[2], trees[1]]


def test_nothing_is_restored_under_an_agent_that_was_set_to_work_meanwhile(
    pi_room: PiRoom,
) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        before = len(pi.events)

        def answer(dialog: Json) -> str:
            if dialog["title"] == "Rewind to":
                return next(str(o) for o in dialog["options"] if 'before "prompt 2' in o)
            asked = pi_room.model.turns()
            pi.send("prompt", message="busy " + script({"text": "late", "sleep": 3}))
            while pi_room.model.turns() == asked:
                time.sleep(0.01)
            return "Files only"

        pi.answer = answer
        pi.prompt("/rewind")
        pi.settle(before)

        assert "the agent is at work" in pi.shown("notify")[-1]
        assert pi_room.tree() == trees[3]


def test_every_checkpoint_can_be_reached_however_many_there_are(
    pi_room: PiRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(pi_room.home))
    engine = open_engine(str(pi_room.folder), create=True)
    engine.save(label="the very first")
    (pi_room.folder / "later").write_text("x\n")
    for _ in range(200):
        engine.save()
    with pi_room.open() as pi:
        pi.state()
        pi.wait_until(lambda: pi.footer() != "", "footer")
        dialogs = choose(pi, "older checkpoints", "the very first", "Files only")

        pi.prompt("/rewind")

        assert len(dialogs[0]["options"]) == 201
        assert pi_room.tree() == {"old.txt": b"v0\n"}


def said(pi: Pi) -> list[str]:
    """What the user said on the branch that the session stands at."""
    entries = {entry["id"]: entry for entry in pi.entries()}
    found, entry = [], entries.get(pi.leaf())
    while entry:
        if entry.get("message", {}).get("role") == "user":
            found.append(entry["message"]["content"][0]["text"].partition(" SCRIPT")[0])
        entry = entries.get(entry["parentId"])
    return found[::-1]


def test_undo_and_redo_take_the_conversation_along(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        for number in (3, 2):
            choose(pi, f'before "prompt {number}', "Files + conversation")
            pi.prompt("/rewind")
        seen = [(pi_room.tree(), said(pi))]
        for what in ("↩ Undo", "↩ Undo", "↪ Redo", "↪ Redo", "↩ Undo"):
            choose(pi, what)
            pi.prompt("/rewind")
            seen.append((pi_room.tree(), said(pi)))
        choose(pi, "↩ Undo")
        pi.prompt("/rewind")
        pi.prompt("and now")

        assert [w for w in pi_room.model.heard() if w.startswith("U:prompt")] == [
            "U:prompt 1", "U:prompt 2", "U:prompt 3"]
    prompts = ["prompt 1", "prompt 2", "prompt 3"]
    states = [(trees[number], prompts[:number]) for number in range(4)]
    assert seen == [states[number] for number in (1, 2, 3, 2, 1, 2)]


def test_a_conversation_that_was_moved_alone_leaves_undo_as_it_was(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        choose(pi, 'before "prompt 3', "Files only")
        pi.prompt("/rewind")
        choose(pi, 'before "prompt 2', "Conversation only")
        pi.prompt("/rewind")
        assert "takes it back" not in pi.shown("notify")[-1]
        choose(pi, "↩ Undo")
        pi.prompt("/rewind")

        assert (pi_room.tree(), said(pi)) == (trees[3], ["prompt 1"])


def test_a_checkpoint_by_hand_has_its_label(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        pi.prompt("hello")
        (pi_room.folder / "mine").write_text("by hand\n")
        pi.prompt("/checkpoint before lunch")
        (pi_room.folder / "mine").unlink()
        choose(pi, "before lunch", "Files only")
        pi.prompt("/rewind")

        assert pi_room.tree()["mine"] == b"by hand\n"
        assert [e["label"] for e in pi.entries(kind="label")] == ["before lunch"]


def test_the_footer_counts_points_and_snapshots(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        three_prompts(pi_room, pi)

        assert pi.footer() == "◆ 9 points / 4 snapshots"


def test_silent_checkpoints_show_nothing(pi_room: PiRoom) -> None:
    pi_room.settings({"rewind": {"silentCheckpoints": True}})
    with pi_room.open() as pi:
        three_prompts(pi_room, pi)
        choose(pi, "Code only")
        pi.call("fork", entryId=pi.entries("user")[0]["id"])

        assert [d for d in pi.dialogs if d["method"] != "select"] == []


# ---- /tree


def go(pi: Pi, entry: str, *how: str) -> str:
    """Navigate; what Pi says of it."""
    pi.prompt(" ".join(["/nav", entry, *how]))
    return pi.shown("notify")[-1]


def test_tree_restores_exactly_the_files_of_a_point(pi_room: PiRoom) -> None:
    with pi_room.open(extensions=NAV) as pi:
        trees = three_prompts(pi_room, pi)
        users, answers = pi.entries("user"), pi.entries("assistant")
        seen = []
        for entry in (users[1], answers[1], users[0], answers[5]):
            choose(pi, "Restore files to that point")
            assert go(pi, entry["id"]) == "nav done"
            seen.append(pi_room.tree())

    assert seen == [trees[1], trees[1], trees[0], trees[3]]


def test_tree_offers_what_the_seed_names(pi_room: PiRoom) -> None:
    with pi_room.open(extensions=NAV) as pi:
        three_prompts(pi_room, pi)
        users, results = pi.entries("user"), pi.entries("toolResult")
        dialogs = choose(pi, "Restore files to that point", "Keep", "Keep")
        for entry in (users[2], users[1], results[0]):
            go(pi, entry["id"])

    keep, restore, undo = ("Keep current files", "Restore files to that point",
                           "Undo last file rewind")
    assert [d["options"] for d in dialogs] == [
        [keep, restore], [keep, restore, undo], [keep, undo]]


def test_tree_keeps_current_files_and_writes_down_what_they_are(pi_room: PiRoom) -> None:
    with pi_room.open(extensions=NAV) as pi:
        three_prompts(pi_room, pi)
        (pi_room.folder / "mine").write_text("unsaved\n")
        now = pi_room.tree()
        user = pi.entries("user")[1]
        choose(pi, "Keep current files")
        go(pi, user["id"])
        leaf = pi.entries()[-1]

        assert pi_room.tree() == now
        assert (leaf["id"], leaf["parentId"]) == (pi.leaf(), user["parentId"])
        assert leaf["customType"] == "rewind-op" and leaf["data"]["current"] == 0
        baseline = leaf["data"]["snapshots"][0]
    found = [cp for cp in pi_room.checkpoints() if cp["snapshot"] == baseline]
    (pi_room.folder / "mine").unlink()
    pi_room.rewind("restore", found[0]["id"], "--yes", "--code-only")
    assert pi_room.tree() == now


def test_where_tree_went_is_where_the_session_goes_on(pi_room: PiRoom) -> None:
    with pi_room.open(extensions=NAV) as pi:
        three_prompts(pi_room, pi)
        choose(pi, "Keep current files")
        go(pi, pi.entries("user")[1]["id"])
        leaf, file = pi.leaf(), pi.state()["sessionFile"]
    with pi_room.open("--session", file) as pi:
        assert pi.leaf() == leaf


def test_tree_undoes_the_last_file_rewind_and_goes_there(pi_room: PiRoom) -> None:
    with pi_room.open(extensions=NAV) as pi:
        trees = three_prompts(pi_room, pi)
        users, answers = pi.entries("user"), pi.entries("assistant")
        choose(pi, "Restore files to that point")
        go(pi, users[1]["id"])
        choose(pi, "Undo last file rewind")

        assert go(pi, answers[5]["id"]) == "nav done"

        assert pi_room.tree() == trees[3]
        assert pi.entries()[-1]["parentId"] == answers[5]["id"]


def test_a_branch_summary_is_a_point(pi_room: PiRoom) -> None:
    with pi_room.open(extensions=NAV) as pi:
        trees = three_prompts(pi_room, pi)
        choose(pi, "Restore files to that point")
        go(pi, pi.entries("user")[1]["id"], "sum")
        summary = pi.entries(kind="branch_summary")[0]["id"]
        (pi_room.folder / "later").write_text("x\n")
        pi.prompt("go on")
        choose(pi, "Restore files to that point")
        go(pi, summary)

        assert pi_room.tree() == trees[1]


def test_a_cancelled_tree_dialog_stays(pi_room: PiRoom) -> None:
    with pi_room.open(extensions=NAV) as pi:
        trees = three_prompts(pi_room, pi)
        leaf = pi.leaf()
        choose(pi)

        assert go(pi, pi.entries("user")[0]["id"]) == "nav cancelled"
        assert (pi_room.tree(), pi.leaf()) == (trees[3], leaf)


# ---- what is asked, and what is not


@pytest.mark.parametrize("how", ["fork", "tree", "rewind"])
def test_a_point_of_another_branch_names_both(pi_room: PiRoom, how: str) -> None:
    with pi_room.open(extensions=NAV) as pi:
        trees = three_prompts(pi_room, pi)
        user = pi.entries("user")[1]["id"]
        pi_room.git("checkout", "-q", "-b", "elsewhere")
        if how == "fork":
            dialogs = choose(pi, "Restore all")
            pi.call("fork", entryId=user)
        elif how == "tree":
            dialogs = choose(pi, "Restore files to that point")
            go(pi, user)
        else:
            dialogs = choose(pi, 'before "prompt 2', "Files only")
            pi.prompt("/rewind")

        assert "branch main" in dialogs[-1]["title"] and "elsewhere" in dialogs[-1]["title"]
        assert pi_room.tree() == trees[1]
    assert pi_room.git("branch", "--show-current").strip() == "elsewhere"


def test_what_was_ignored_stays_when_the_agent_deletes_the_ignore_file(pi_room: PiRoom) -> None:
    (pi_room.folder / ".gitignore").write_text("secret\nbuild/\n")
    for name in ("secret", "build/out", "node_modules/x/index.js", ".venv/bin/python"):
        path = pi_room.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious\n")
    with pi_room.open() as pi:
        before = pi_room.tree()
        pi.prompt("go " + script(pi_room.shell("rm .gitignore; echo 1 > a.txt; echo x > secret"),
                                 text("done")))
        choose(pi, "Restore all")
        pi.call("fork", entryId=pi.entries("user")[0]["id"])

        assert pi_room.tree() == {**before, "secret": b"x\n"}


def test_an_extension_may_prefer_the_conversation_only(pi_room: PiRoom) -> None:
    with pi_room.open(extensions=NAV) as pi:
        trees = three_prompts(pi_room, pi)
        dialogs = choose(pi, "Conversation only")
        event = {"mode": "conversation-only", "source": "fork-from-first"}
        pi.prompt("/emit rewind:fork-preference " + json.dumps(event))
        pi.call("fork", entryId=pi.entries("user")[0]["id"])

        assert dialogs == []
        assert pi_room.tree() == trees[3] and pi.entries("user") == []


def test_a_restore_that_cannot_be_done_forks_nothing(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        pi.prompt("one " + script(pi_room.write("a.txt", "1\n"), text("done")))
        file = pi.state()["sessionFile"]
        store = Path(pi_room.json("status")["store"].replace("~", str(pi_room.home)))
        for path in store.rglob("*.pack"):
            path.unlink()
        for path in store.rglob("*.idx"):
            path.unlink()
        choose(pi, "Restore all")
        before = pi_room.tree()

        answer = pi.call("fork", entryId=pi.entries("user")[0]["id"])

        assert answer["data"]["cancelled"] is True
        assert (pi_room.tree(), pi.state()["sessionFile"]) == (before, file)
        assert any("nothing was forked" in words for words in pi.shown("notify"))



def test_in_the_repository_our_snapshots_are_none_that_pi_rewind_hook_finds(
    pi_room: PiRoom,
) -> None:
    """Their files are not at the top, so it would restore something else."""
    pi_room.rewind("init", "--mode", "repo", "--yes")
    with pi_room.open() as pi:
        trees = three_prompts(pi_room, pi)
        choose(pi, "Restore all")
        pi.call("fork", entryId=pi.entries("user")[1]["id"])
        assert pi_room.tree() == trees[1]
        op = pi.entries(kind="rewind-op")[-1]["data"]
        names = [*op["snapshots"], *pi.entries(kind="rewind-turn")[0]["data"]["snapshots"]]
        choose(pi, "Undo last file rewind")
        pi.call("fork", entryId=pi.entries("user")[0]["id"])

        assert pi_room.tree() == trees[3]
    commits = "".join(f"{name}^{{commit}}\n" for name in names)
    found = subprocess.run(["git", "cat-file", "--batch-check"], cwd=pi_room.folder, text=True,
                           input=commits, capture_output=True, check=True).stdout
    assert len(names) == 4 and found.count(" missing\n") == 4
