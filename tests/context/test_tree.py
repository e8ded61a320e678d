"""The session tree: what Pi and omp wrote is read as they read it, and never changed."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from coderewind.context import SessionTree
from coderewind.context.persist import BLOB, CUT, MOST_CHARACTERS, Json
from coderewind.context.projection import text_of
from coderewind.errors import RewindError

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.jsonl"))


def user(text: str) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def answer(text: str) -> Json:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def call(id: str) -> Json:
    return {"role": "assistant",
            "content": [{"type": "toolCall", "id": id, "name": "read", "arguments": {}}]}


def result(id: str, text: str = "found") -> Json:
    return {"role": "toolResult", "toolCallId": id, "toolName": "read",
            "content": [{"type": "text", "text": text}], "isError": False}


def words(tree: SessionTree) -> list[str]:
    return [text_of(message) for message in tree.messages()]


@pytest.fixture
def tree(tmp_path: Path) -> SessionTree:
    return SessionTree.create(tmp_path / "session.jsonl", cwd="/work")


def again(tree: SessionTree) -> SessionTree:
    return SessionTree.open(tree.path)


def sample(name: str, folder: Path) -> SessionTree:
    path = folder / name
    shutil.copy(Path(__file__).parent / "samples" / name, path)
    return SessionTree.open(path)


@pytest.mark.parametrize("name", [path.name for path in SAMPLES])
def test_reading_a_session_changes_no_byte(name: str, tmp_path: Path) -> None:
    tree = sample(name, tmp_path)
    before = Path(tree.path).read_bytes()

    tree.messages()
    tree.branch(next(iter(tree)))

    assert Path(tree.path).read_bytes() == before


@pytest.mark.parametrize("name", [path.name for path in SAMPLES])
def test_every_entry_of_a_recorded_session_is_found_without_parsing(
    name: str, tmp_path: Path
) -> None:
    tree = sample(name, tmp_path)

    lines = [json.loads(line) for line in Path(tree.path).read_text().splitlines()]
    entries = [line for line in lines if line["type"] not in ("title", "session")]
    assert [(id, tree.kind(id), tree.parent(id)) for id in tree] == [
        (entry["id"], entry["type"], entry["parentId"]) for entry in entries
    ]
    assert tree.leaf == entries[-1]["id"]
    assert [tree.role(id) for id in tree] == [
        entry.get("message", {}).get("role", "") for entry in entries]


@pytest.mark.parametrize("name", [path.name for path in SAMPLES])
def test_appending_to_a_recorded_session_keeps_what_is_there(name: str, tmp_path: Path) -> None:
    tree = sample(name, tmp_path)
    before = Path(tree.path).read_bytes()

    tree.append_message(user("next"))

    after = Path(tree.path).read_bytes()
    assert after.startswith(before)
    assert words(again(tree))[-1] == "next"


@pytest.mark.parametrize("name", ["omp-rewound.jsonl", "pi-rewound.jsonl"])
def test_an_untouched_entry_is_written_as_its_agent_wrote_it(name: str, tmp_path: Path) -> None:
    from coderewind.context.persist import line_of

    tree = sample(name, tmp_path)

    lines = Path(tree.path).read_bytes().splitlines(keepends=True)
    assert [line_of(tree.entry(id)) for id in tree] == lines[-len(tree):]


def test_pis_pruned_session_has_the_context_that_pi_sent(tmp_path: Path) -> None:
    tree = sample("pi-rewound.jsonl", tmp_path)

    said = "\n".join(words(tree))
    assert "FOUND in C" in said
    assert "SECRET" not in said.partition("SEQ:")[2].partition("]]")[2]
    assert [message["role"] for message in tree.messages()] == [
        "system", "user", "assistant", "toolResult", "user", "assistant", "system", "user",
        "assistant"]


def test_omps_rewound_session_has_the_context_that_omp_sent(tmp_path: Path) -> None:
    tree = sample("omp-rewound.jsonl", tmp_path)

    assert [item.message["role"] for item in tree.context()] == [
        "user", "assistant", "toolResult", "branchSummary", "custom", "assistant"]


def test_a_compaction_stands_for_what_is_before_the_first_kept_entry(tree: SessionTree) -> None:
    tree.append_message(user("one"))
    kept = tree.append_message(user("two"))
    tree.append_compaction("the beginning", kept)
    tree.append_message(user("three"))

    assert [text.splitlines()[-2] if "<summary>" in text else text for text in words(tree)] == [
        "the beginning", "two", "three"]


def test_of_two_compactions_the_newest_counts(tree: SessionTree) -> None:
    first = tree.append_message(user("one"))
    tree.append_compaction("old summary", first)
    tree.append_message(user("two"))
    tree.append_compaction("new summary", first)

    said = words(tree)
    assert "new summary" in said[0]
    assert said[1:] == ["one", "two"]


def test_an_edit_takes_an_entry_out_of_the_context_on_its_branch_only(tree: SessionTree) -> None:
    tree.append_message(user("one"))
    secret = tree.append_message(user("secret"))
    tree.edit(secret)
    assert words(tree) == ["one"]

    tree.branch(secret)
    assert words(tree) == ["one", "secret"]


def test_the_latest_edit_counts_and_may_replace(tree: SessionTree) -> None:
    target = tree.append_message(answer("long"))
    tree.edit(target)
    tree.edit(target, "short")

    assert words(again(tree)) == ["short"]


def test_an_entry_beside_the_branch_cannot_be_edited(tree: SessionTree) -> None:
    first = tree.append_message(user("one"))
    aside = tree.append_message(user("aside"))
    tree.branch(first)

    with pytest.raises(RewindError, match="not on this branch"):
        tree.edit(aside)


def test_a_branch_keeps_the_path_it_leaves(tree: SessionTree) -> None:
    first = tree.append_message(user("one"))
    left = tree.append_message(answer("left"))
    tree.branch_with_summary(first, "it was a dead end")
    tree.append_message(user("two"))

    assert [text if "dead end" not in text else "summary" for text in words(again(tree))] == [
        "one", "summary", "two"]
    assert left in again(tree)


def test_a_branch_may_begin_before_everything(tree: SessionTree) -> None:
    tree.append_message(user("one"))
    tree.branch(None)
    tree.append_message(user("other"))

    assert words(again(tree)) == ["other"]


def test_a_programs_note_is_not_sent_and_its_message_is(tree: SessionTree) -> None:
    tree.append_custom("note", {"secret": 1})
    tree.append_custom_message("hint", "read the README", display=False)

    assert words(tree) == ["read the README"]


def test_a_call_without_result_and_a_result_without_call_are_not_sent(tree: SessionTree) -> None:
    tree.append_message(user("go"))
    tree.append_message(result("never-asked"))
    tree.append_message(call("a"))
    tree.append_message(result("a"))
    tree.append_message(result("a", "a second one"))
    tree.append_message(call("b"))

    assert [message["role"] for message in tree.messages()] == ["user", "assistant", "toolResult"]


def test_an_id_that_a_provider_uses_again_is_answered_each_time(tree: SessionTree) -> None:
    for text in ("first", "second"):
        tree.append_message(call("call_0"))
        tree.append_message(result("call_0", text))

    assert words(tree) == ["", "first", "", "second"]


def test_a_failed_reply_is_not_sent_nor_are_the_results_of_its_calls(tree: SessionTree) -> None:
    tree.append_message(user("go"))
    tree.append_message({**call("a"), "stopReason": "aborted"})
    tree.append_message(result("a"))

    assert words(tree) == ["go"]


def test_an_entry_of_an_unknown_type_is_kept_and_passed_over(tree: SessionTree) -> None:
    tree.append("from_the_future", {"wheels": 4})
    tree.append_message(user("hello"))

    reopened = again(tree)
    assert words(reopened) == ["hello"]
    assert [reopened.kind(id) for id in reopened] == ["from_the_future", "message"]


def test_a_broken_line_is_passed_over_and_kept(tree: SessionTree) -> None:
    tree.append_message(user("one"))
    with open(tree.path, "ab") as file:
        file.write(b'{"type":"message","id":"aaaaaaaa","pare{"x\n\xff\xfe}\n[]\n17\n\n')
    before = Path(tree.path).read_bytes()

    reopened = again(tree)
    reopened.append_message(user("two"))

    assert words(again(tree)) == ["one", "two"]
    assert Path(tree.path).read_bytes().startswith(before)


def test_a_line_that_is_broken_inside_ends_the_path_as_in_pi(tree: SessionTree) -> None:
    tree.append_message(user("one"))
    broken = tree.append_message(user("broken"))
    tree.append_message(user("two"))
    path = Path(tree.path)
    path.write_bytes(path.read_bytes().replace(b'"text":"broken"', b'"text":"broken'))

    reopened = again(tree)

    assert words(reopened) == ["two"]
    assert broken not in reopened


def test_half_a_last_line_is_closed_before_the_next_entry(tree: SessionTree) -> None:
    tree.append_message(user("one"))
    half = b'{"type":"message","id":"bbbbbbbb","parentId":null,"mess'
    with open(tree.path, "ab") as file:
        file.write(half)

    reopened = again(tree)
    reopened.append_message(user("two"))

    assert words(again(tree)) == ["one", "two"]
    assert half + b"\n" in Path(tree.path).read_bytes()


def test_a_whole_last_line_without_its_end_counts(tree: SessionTree) -> None:
    tree.append_message(user("one"))
    path = Path(tree.path)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))

    reopened = again(tree)
    assert words(reopened) == ["one"]
    reopened.append_message(user("two"))
    assert words(again(tree)) == ["one", "two"]


def test_what_another_process_appended_is_kept(tree: SessionTree) -> None:
    other = again(tree)
    other.append_message(user("theirs"))
    tree.append_message(user("ours"))

    assert words(tree) == ["ours"]
    assert sum(tree.kind(id) == "message" for id in tree) == 2
    assert words(again(tree)) == ["ours"]


def test_entries_that_point_at_each_other_do_not_hang(tree: SessionTree) -> None:
    with open(tree.path, "ab") as file:
        for id, parent in (("aaaaaaaa", "bbbbbbbb"), ("bbbbbbbb", "aaaaaaaa")):
            file.write(json.dumps({"type": "message", "id": id, "parentId": parent,
                                   "message": user(id)}).encode() + b"\n")

    assert words(again(tree)) == ["aaaaaaaa", "bbbbbbbb"]


@pytest.mark.parametrize("line", [
    b'{"type":"message","id":"\xff","parentId":null}',
    b'{"type":"\xff","id":"a","parentId":null}',
    b'{"type":"message","id":"a","parentId":"\xff"}',
    b'{"type":"message","message":{},"id":"\xc3","parentId":null,"timestamp":""}',
])
def test_a_line_that_is_not_utf8_is_a_broken_one(tree: SessionTree, line: bytes) -> None:
    tree.append_message(user("one"))
    Path(tree.path).write_bytes(Path(tree.path).read_bytes() + line + b"\n")

    assert words(again(tree)) == ["one"]


def test_ids_inside_a_message_are_not_taken_for_the_entrys(tree: SessionTree) -> None:
    tricky = '","id":"cccccccc","parentId":null,"timestamp":"x"}'
    with open(tree.path, "ab") as file:
        entry = {"customType": "x", "type": "custom", "parentId": None, "id": "dddddddd",
                 "data": {"type": "message", "id": "eeeeeeee", "parentId": None}, "z": tricky}
        file.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")
        entry = {"type": "custom", "data": {"id": "ffffffff", "parentId": None, "timestamp": "x"},
                 "id": "dddddddf", "parentId": "dddddddd"}
        file.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")

    assert list(again(tree)) == ["dddddddd", "dddddddf"]


def test_a_long_text_is_cut_the_same_live_and_on_disk(tree: SessionTree) -> None:
    tree.append_message(user("x" * (MOST_CHARACTERS + 1)))

    live = words(tree)
    assert live == words(again(tree))
    assert len(live[0]) == MOST_CHARACTERS
    assert live[0].endswith(CUT)


def test_signed_reasoning_is_never_cut(tree: SessionTree) -> None:
    block = {"type": "thinking", "thinking": "x" * (MOST_CHARACTERS + 1),
             "thinkingSignature": "signed"}
    tree.append_message({"role": "assistant", "content": [block]})

    assert again(tree).messages()[0]["content"] == [block]


def test_an_image_is_kept_beside_the_session_once(tree: SessionTree) -> None:
    image = {"type": "image", "data": "AAAA" * 1000, "mimeType": "image/png"}
    tree.append_message({"role": "user", "content": [image]})
    tree.append_message({"role": "user", "content": [image]})

    assert [message["content"] for message in again(tree).messages()] == [[image], [image]]
    assert BLOB.encode() in Path(tree.path).read_bytes()
    blobs = list((Path(tree.path).parent / "blobs").iterdir())
    assert len(blobs) == 1
    assert stat.S_IMODE(blobs[0].stat().st_mode) == 0o600


def test_a_lost_image_is_said_and_not_sent(tree: SessionTree) -> None:
    image = {"type": "image", "data": "AAAA" * 1000, "mimeType": "image/png"}
    tree.append_message({"role": "user", "content": [image]})
    shutil.rmtree(Path(tree.path).parent / "blobs")

    assert "image missing" in words(again(tree))[0]


def test_a_reference_never_leads_out_of_the_images_folder(tree: SessionTree) -> None:
    (Path(tree.path).parent / "secret").write_text("secret")
    for name in ("../secret", "../../etc/passwd", "x" * 64):
        tree.append_message({"role": "user", "content": [
            {"type": "image", "data": BLOB + name, "mimeType": "image/png"}]})

    assert all("image missing" in text for text in words(again(tree)))


def test_half_a_surrogate_pair_survives(tree: SessionTree) -> None:
    tree.append_message(user("broken \ud83d emoji"))

    assert words(again(tree)) == ["broken \ud83d emoji"]


def test_omps_title_slot_is_rewritten_in_place(tmp_path: Path) -> None:
    tree = sample("omp-rewound.jsonl", tmp_path)
    before = Path(tree.path).read_bytes()

    tree.rename("ein langer Titel, " * 40)

    after = Path(tree.path).read_bytes()
    assert after[256 : len(before)] == before[256:]
    assert after[255:256] == b"\n"
    reopened = again(tree)
    assert reopened.title.startswith("ein langer Titel")
    assert reopened.has_title_slot


def test_the_lineage_is_this_session_and_its_ancestors(tmp_path: Path) -> None:
    first = SessionTree.create(tmp_path / "1.jsonl")
    second = SessionTree.create(tmp_path / "2.jsonl", parent=first.path)
    third = SessionTree.create(tmp_path / "3.jsonl", parent=second.path)

    assert third.lineage() == [third.path, second.path, first.path]


def test_a_lineage_in_a_circle_ends(tmp_path: Path) -> None:
    first = SessionTree.create(tmp_path / "1.jsonl", parent=str(tmp_path / "2.jsonl"))
    second = SessionTree.create(tmp_path / "2.jsonl", parent=first.path)

    assert second.lineage() == [second.path, first.path]


def test_a_label_stays_until_it_is_taken_away(tree: SessionTree) -> None:
    one, two = tree.append_message(user("one")), tree.append_message(user("two"))
    tree.label(one, "start")
    tree.label(two, "here")
    tree.label(one, "")

    assert again(tree).labels() == {two: "here"}


def test_a_session_file_is_private(tree: SessionTree) -> None:
    assert stat.S_IMODE(os.stat(tree.path).st_mode) == 0o600


def test_appending_costs_only_the_new_bytes(tree: SessionTree) -> None:
    tree.append_message(user("x" * 100_000))
    before = os.path.getsize(tree.path)

    tree.append_message(user("short"))

    assert os.path.getsize(tree.path) - before < 250


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "is not a session"), (b"hello\n", "is not a session"),
     (b'{"type":"session","id":"x"}\n', "version 1"),
     (b'{"type":"session","version":9,"id":"x"}\n', "version 9")],
)
def test_what_is_no_session_is_refused(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(content)

    with pytest.raises(RewindError, match=says):
        SessionTree.open(path)
    assert path.read_bytes() == content


def test_a_missing_session_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(RewindError):
        SessionTree.open(tmp_path / "none.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_session_can_be_kept_in_memory() -> None:
    tree = SessionTree.memory(cwd="/work")
    first = tree.append_message(user("one"))
    tree.append_message(user("two"))
    tree.branch(first)

    assert words(tree) == ["one"]
