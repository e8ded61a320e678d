"""Trees, commits, packs and their indexes as bytes."""

import os
import struct
import zlib
from hashlib import sha1, sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coderewind.store import pack as packs
from coderewind.store.objects import PackIndex, commit_bytes, parse_tree, tree_bytes
from coderewind.store.pack import BLOB, PackWriter, SizeChanged, object_id, write_durably

_NAMES = st.binary(min_size=1, max_size=8).filter(lambda n: b"\0" not in n and b"/" not in n)
_MODES = st.sampled_from([0o100644, 0o100755, 0o120000, 0o40000, 0o160000])


# ---- trees


def test_a_folder_sorts_as_if_its_name_ended_with_a_slash() -> None:
    oid = b"\1" * 20
    entries = [(0o40000, b"a", oid), (0o100644, b"a.b", oid), (0o100644, b"a0", oid),
               (0o100644, b"a-", oid)]

    names = [name for _, name, _ in parse_tree(tree_bytes(entries), 20)]

    assert names == [b"a-", b"a.b", b"a", b"a0"]


@pytest.mark.parametrize("width", [20, 32])
@given(data=st.data())
def test_a_tree_is_read_back(width: int, data: st.DataObject) -> None:
    names = data.draw(st.lists(_NAMES, unique=True, max_size=8))
    entries = [(data.draw(_MODES), name, os.urandom(width)) for name in names]

    assert sorted(parse_tree(tree_bytes(entries), width)) == sorted(entries)


@given(st.lists(st.tuples(_MODES, _NAMES), unique_by=lambda pair: pair[1], max_size=8))
def test_the_order_given_does_not_matter(entries: list[tuple[int, bytes]]) -> None:
    rows = [(mode, name, b"\1" * 20) for mode, name in entries]

    assert tree_bytes(rows) == tree_bytes(rows[::-1])


def test_an_empty_tree_has_the_id_that_git_knows() -> None:
    assert object_id(packs.TREE, tree_bytes([]), "sha1").hex() == (
        "4b825dc642cb6eb9a060e54bf8d69288fbee4904")
    assert object_id(packs.TREE, b"", "sha256").hex() == (
        "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321")


@given(st.binary(max_size=60))
def test_a_damaged_tree_is_an_error_that_is_caught(data: bytes) -> None:
    try:
        parse_tree(data, 20)
    except ValueError:
        pass


# ---- commits


def test_a_commit_names_nobody_but_us() -> None:
    data = commit_bytes(b"\1" * 20, [b"\2" * 20, b"\3" * 20], 5, b"message\n")

    assert data.decode() == (
        "tree " + "01" * 20 + "\nparent " + "02" * 20 + "\nparent " + "03" * 20
        + "\nauthor rewind <rewind@localhost> 5 +0000"
        + "\ncommitter rewind <rewind@localhost> 5 +0000\n\nmessage\n")


# ---- packs


def _unpack(data: bytes) -> list[tuple[int, bytes]]:
    """Kind and content of every object of a pack, by the format's description."""
    assert data[:8] == b"PACK\0\0\0\2"
    count, at, found = struct.unpack(">L", data[8:12])[0], 12, []
    for _ in range(count):
        byte = data[at]
        at += 1
        kind, size, shift = byte >> 4 & 7, byte & 15, 4
        while byte & 128:
            byte = data[at]
            at += 1
            size |= (byte & 127) << shift
            shift += 7
        inflate = zlib.decompressobj()
        content = inflate.decompress(data[at:])
        assert len(content) == size
        at = len(data) - len(inflate.unused_data)
        found.append((kind, content))
    assert len(data) - at in (20, 32)
    return found


@pytest.mark.parametrize("algo", ["sha1", "sha256"])
@given(contents=st.lists(st.binary(max_size=300), min_size=1, max_size=30, unique=True))
def test_a_pack_holds_what_was_added(
    tmp_path_factory: pytest.TempPathFactory, algo: str, contents: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("pack")
    writer = PackWriter(os.fsencode(folder), algo)
    oids = [writer.add(BLOB, content) for content in contents]
    writer.add(BLOB, contents[0])

    name = writer.finish()

    assert name is not None
    data = (folder / (name.decode() + ".pack")).read_bytes()
    assert _unpack(data) == [(BLOB, content) for content in contents]
    checksum = (sha1(data[:-20]) if algo == "sha1" else sha256(data[:-32])).digest()
    assert data.endswith(checksum)
    assert name.decode() == "pack-" + checksum.hex()
    index = PackIndex(os.fsencode(folder / (name.decode() + ".idx")), len(checksum))
    assert list(index.oids()) == sorted(oids)
    assert all(oid in index for oid in oids)
    assert os.urandom(len(checksum)) not in index
    assert bytes(len(checksum)) not in index
    assert b"\xff" * len(checksum) not in index


def test_an_empty_pack_leaves_no_file(tmp_path: Path) -> None:
    assert PackWriter(os.fsencode(tmp_path), "sha1").finish() is None
    assert os.listdir(tmp_path) == []


def test_an_abandoned_pack_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "_SPILL", 1000)
    writer = PackWriter(os.fsencode(tmp_path), "sha1")
    for _ in range(10):
        writer.add(BLOB, os.urandom(500))
    assert os.listdir(tmp_path) != []

    writer.abandon()

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("spill", [10, 1000, 1 << 20])
def test_a_pack_that_spills_is_the_same_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spill: int
) -> None:
    contents = [os.urandom(400) for _ in range(20)]
    names = []
    for limit in (spill, 8 << 20):
        monkeypatch.setattr(packs, "_SPILL", limit)
        writer = PackWriter(os.fsencode(tmp_path), "sha1")
        for content in contents:
            writer.add(BLOB, content)
        writer.add_stream(4000, iter([b"x" * 1000] * 4))
        names.append(writer.finish())

    assert names[0] == names[1]


@pytest.mark.parametrize("spill", [10, 300, 1 << 20])
@pytest.mark.parametrize("chunks", [[b"short"], [b"much", b" too", b" long"], []])
def test_a_stream_of_another_length_leaves_the_pack_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spill: int, chunks: list[bytes]
) -> None:
    monkeypatch.setattr(packs, "_SPILL", spill)
    writer = PackWriter(os.fsencode(tmp_path), "sha1")
    writer.add(BLOB, b"before" * 100)

    with pytest.raises(SizeChanged):
        writer.add_stream(8, iter(chunks))
    writer.add(BLOB, b"after" * 100)
    name = writer.finish()

    assert name is not None
    data = (tmp_path / (name.decode() + ".pack")).read_bytes()
    assert _unpack(data) == [(BLOB, b"before" * 100), (BLOB, b"after" * 100)]


@pytest.mark.parametrize("spill", [10, 300, 1 << 20])
def test_a_content_streamed_twice_is_stored_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spill: int
) -> None:
    monkeypatch.setattr(packs, "_SPILL", spill)
    writer = PackWriter(os.fsencode(tmp_path), "sha1")
    first = writer.add_stream(600, iter([b"x" * 300, b"x" * 300]))
    second = writer.add_stream(600, iter([b"x" * 600]))
    writer.add(BLOB, b"after")
    name = writer.finish()

    assert first == second == object_id(BLOB, b"x" * 600, "sha1")
    assert name is not None
    data = (tmp_path / (name.decode() + ".pack")).read_bytes()
    assert _unpack(data) == [(BLOB, b"x" * 600), (BLOB, b"after")]


@pytest.mark.parametrize("size", [0, 1, 15, 16, 2047, 2048, 1 << 18, (1 << 31) + 5, 1 << 40])
def test_the_header_of_an_object_says_its_size(size: int) -> None:
    header = packs._header(BLOB, size)

    value, shift = header[0] & 15, 4
    for byte in header[1:]:
        value |= (byte & 127) << shift
        shift += 7
    assert (header[0] >> 4 & 7, value) == (BLOB, size)
    assert all(byte & 128 for byte in header[:-1])
    assert not header[-1] & 128


def test_offsets_beyond_two_gigabytes_go_into_the_index(tmp_path: Path) -> None:
    writer = PackWriter(os.fsencode(tmp_path), "sha1")
    far = {bytes([i]) * 20: (i, (1 << 31) + i * (1 << 33)) for i in range(5)}
    near = {bytes([200 + i]) * 20: (i, 12 + i) for i in range(5)}
    writer._entries = {**far, **near}

    data = writer._index(b"\7" * 20)

    base = 8 + 1024 + 10 * 20
    small = struct.unpack(">10L", data[base + 40 : base + 80])
    large = struct.unpack(">5Q", data[base + 80 : base + 120])
    oids = sorted(far | near)
    for i, oid in enumerate(oids):
        offset = large[small[i] & 0x7FFFFFFF] if small[i] >> 31 else small[i]
        assert offset == (far | near)[oid][1]
    assert data[-20:] == sha1(data[:-20]).digest()


@pytest.mark.parametrize("size", [0, 7, 1000, 1071])
def test_a_short_index_is_refused(tmp_path: Path, size: int) -> None:
    writer = PackWriter(os.fsencode(tmp_path), "sha1")
    writer.add(BLOB, b"x")
    name = writer.finish()
    assert name is not None
    whole = (tmp_path / (name.decode() + ".idx")).read_bytes()
    (tmp_path / "short.idx").write_bytes(whole[:size])

    with pytest.raises(ValueError, match="short index"):
        PackIndex(os.fsencode(tmp_path / "short.idx"), 20)


def test_an_index_that_promises_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    data = b"\xfftOc\0\0\0\2" + b"\xff\xff\xff\xff" * 256 + bytes(100)
    (tmp_path / "x.idx").write_bytes(data)

    with pytest.raises(ValueError, match="short index"):
        PackIndex(os.fsencode(tmp_path / "x.idx"), 20)


def test_an_index_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.idx").write_bytes(b"\xfftOc\0\0\0\3" + bytes(2000))

    with pytest.raises(ValueError, match="version 2"):
        PackIndex(os.fsencode(tmp_path / "x.idx"), 20)


# ---- single files


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)

    write_durably(os.fsencode(path), b"new")

    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["file"]


def test_a_private_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()

    with pytest.raises(IsADirectoryError):
        write_durably(os.fsencode(tmp_path / "file"), b"new")

    assert os.listdir(tmp_path) == ["file"]
