"""Every state a repository can be in: the files come back, git's own state is not touched.

`Box.rewind` compares everything under every `.git` before and after each call.
"""

import os
import shutil
import subprocess
from collections.abc import Callable

import pytest

from .box import Box
from .tree import picture

State = Callable[[Box], object]


def _conflict(box: Box) -> None:
    """Two branches that disagree about a.txt."""
    box.git("checkout", "-q", "-b", "other")
    box.write("a.txt", "theirs\n").write("only-theirs", "t\n").commit("theirs")
    box.git("checkout", "-q", "main")
    box.write("a.txt", "ours\n").write("only-ours", "o\n").commit("ours")


def _merging(box: Box) -> None:
    _conflict(box)
    box.git("merge", "other", ok=False)


def _rebasing(box: Box) -> None:
    _conflict(box)
    box.git("rebase", "other", ok=False)


def _rebasing_by_apply(box: Box) -> None:
    _conflict(box)
    box.git("rebase", "--apply", "other", ok=False)


def _rebasing_interactively(box: Box) -> None:
    box.write("a.txt", "2\n").commit("two").write("a.txt", "3\n").commit("three")
    box.git("-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "-i", "HEAD~2")


def _cherry_picking(box: Box) -> None:
    _conflict(box)
    box.git("cherry-pick", "other", ok=False)


def _reverting(box: Box) -> None:
    box.write("a.txt", "2\n").commit("two").write("a.txt", "3\n").commit("three")
    box.git("revert", "HEAD~1", ok=False)


def _bisecting(box: Box) -> None:
    for number in range(5):
        box.write("a.txt", f"{number}\n").commit(str(number))
    box.git("bisect", "start", "HEAD", "HEAD~4")


def _applying_mail(box: Box) -> None:
    _conflict(box)
    patch = box.git("format-patch", "-1", "other", "--stdout")
    box.write(f"{box.root}/patch", patch)
    box.git("am", f"{box.root}/patch", ok=False)


def _unborn(box: Box) -> None:
    shutil.rmtree(box.path(".git"))
    box.init()


def _unborn_with_staged_files(box: Box) -> None:
    _unborn(box)
    box.git("add", "-A")
    box.write("a.txt", "changed after staging\n")


def _detached(box: Box) -> None:
    box.write("a.txt", "2\n").commit("two")
    box.git("checkout", "-q", "--detach", "HEAD~1")


def _rename_in_conflict(box: Box) -> None:
    box.git("checkout", "-q", "-b", "other")
    box.git("mv", "a.txt", "theirs.txt")
    box.commit("theirs")
    box.git("checkout", "-q", "main")
    box.git("mv", "a.txt", "ours.txt")
    box.commit("ours")
    box.git("merge", "other", ok=False)


def _file_against_folder_in_conflict(box: Box) -> None:
    box.git("checkout", "-q", "-b", "other")
    box.write("spot/file", "1\n").commit("theirs")
    box.git("checkout", "-q", "main")
    box.write("spot", "1\n").commit("ours")
    box.git("merge", "other", ok=False)


def _locked(box: Box) -> None:
    box.write(".git/index.lock", "")


def _other_locks(box: Box) -> None:
    for name in ("HEAD", "config", "packed-refs", "shallow", "refs/heads/main"):
        box.write(f".git/{name}.lock", "")


def _no_index(box: Box) -> None:
    os.remove(box.path(".git/index"))


def _corrupt_index(box: Box) -> None:
    data = bytearray(box.read(".git/index"))
    data[20:40] = b"\xff" * 20
    box.write(".git/index", bytes(data))


def _truncated_index(box: Box) -> None:
    box.write(".git/index", box.read(".git/index")[:30])


def _empty_index(box: Box) -> None:
    box.write(".git/index", "")


def _intent_to_add(box: Box) -> None:
    box.write("intended", "not yet staged\n").write("empty-intended", "")
    box.git("add", "-N", "intended", "empty-intended")


def _flags(box: Box) -> None:
    box.git("update-index", "--assume-unchanged", "a.txt")
    box.git("update-index", "--skip-worktree", "sub/b.txt")
    box.write("a.txt", "hidden change\n").write("sub/b.txt", "hidden too\n")


def _staged_differently(box: Box) -> None:
    box.write("a.txt", "staged\n").write("staged-only", "s\n").write("gone", "g\n")
    box.git("add", "-A")
    box.write("a.txt", "worktree\n").remove("staged-only")
    box.git("rm", "-q", "--cached", "sub/b.txt")


def _stashed(box: Box) -> None:
    box.write("a.txt", "stashed\n").write("untracked", "u\n")
    box.git("stash", "-u", "-q")
    box.write("a.txt", "after\n")


def _folders(box: Box) -> None:
    for folder in ("in", "out", "out/deep"):
        box.write(f"{folder}/file", f"{folder}\n")
    box.commit("folders")


def _sparse_cone(box: Box) -> None:
    _folders(box)
    box.git("sparse-checkout", "set", "--cone", "in", "sub")


def _sparse_patterns(box: Box) -> None:
    _folders(box)
    box.git("sparse-checkout", "set", "--no-cone", "/*", "!/out/*", "!sub/b.txt")


def _sparse_index(box: Box) -> None:
    _folders(box)
    box.git("sparse-checkout", "set", "--cone", "--sparse-index", "in", "sub")


def _sparse_with_files_outside(box: Box) -> None:
    _sparse_cone(box)
    box.write("out/file", "changed though outside the cone\n").write("out/new", "new\n")


def _split_index(box: Box) -> None:
    box.git("config", "core.splitIndex", "true")
    box.git("update-index", "--split-index")
    box.write("later", "x\n")
    box.git("add", "later")


def _untracked_cache(box: Box) -> None:
    box.git("update-index", "--force-untracked-cache")
    box.git("status")


def _index_version_4(box: Box) -> None:
    box.git("update-index", "--index-version", "4")


def _packed(box: Box) -> None:
    for number in range(3):
        box.write("a.txt", f"{number}\n").commit(str(number))
        box.git("tag", f"t{number}")
    box.git("gc", "-q")
    box.git("commit-graph", "write")
    box.git("multi-pack-index", "write", "--bitmap")


def _replaced(box: Box) -> None:
    box.write("a.txt", "2\n").commit("two")
    blob = box.git("rev-parse", "HEAD:a.txt").decode().strip()
    other = box.git("rev-parse", "HEAD~1:a.txt").decode().strip()
    box.git("replace", blob, other)
    box.git("replace", "HEAD", "HEAD~1")


def _damaged_objects(box: Box) -> None:
    """The user's own repository lost the blobs and trees of its commit."""
    shutil.rmtree(box.path(".git/objects"))
    os.makedirs(box.path(".git/objects/pack"))


def _broken_head(box: Box) -> None:
    box.write(".git/refs/heads/main", "0" * 39 + "1\n")


def _read_only_git_dir(box: Box) -> None:
    for folder, folders, names in os.walk(box.path(".git")):
        for name in [*folders, *names]:
            os.chmod(os.path.join(folder, name), 0o555 if name in folders else 0o444)
    os.chmod(box.path(".git"), 0o555)


def _worktree_config(box: Box) -> None:
    box.git("config", "extensions.worktreeConfig", "true")
    box.git("config", "--worktree", "core.autocrlf", "true")


def _logged_off(box: Box) -> None:
    box.git("config", "core.logAllRefUpdates", "false")
    shutil.rmtree(box.path(".git/logs"))


def _tracked_but_ignored(box: Box) -> None:
    box.write("log.log", "tracked\n").commit("log")
    box.write(".gitignore", "*.log\n")


def _everything_deleted_but_tracked(box: Box) -> None:
    box.remove("a.txt").remove("sub")


STATES: dict[str, State] = {
    "unborn": _unborn,
    "unborn-staged": _unborn_with_staged_files,
    "detached": _detached,
    "merge": _merging,
    "rebase": _rebasing,
    "rebase-apply": _rebasing_by_apply,
    "rebase-interactive": _rebasing_interactively,
    "cherry-pick": _cherry_picking,
    "revert": _reverting,
    "bisect": _bisecting,
    "am": _applying_mail,
    "rename-conflict": _rename_in_conflict,
    "file-folder-conflict": _file_against_folder_in_conflict,
    "index-locked": _locked,
    "other-locks": _other_locks,
    "index-missing": _no_index,
    "index-corrupt": _corrupt_index,
    "index-truncated": _truncated_index,
    "index-empty": _empty_index,
    "intent-to-add": _intent_to_add,
    "flags": _flags,
    "staged-differently": _staged_differently,
    "stash": _stashed,
    "sparse-cone": _sparse_cone,
    "sparse-patterns": _sparse_patterns,
    "sparse-index": _sparse_index,
    "sparse-with-files-outside": _sparse_with_files_outside,
    "split-index": _split_index,
    "untracked-cache": _untracked_cache,
    "index-v4": _index_version_4,
    "packed": _packed,
    "replaced": _replaced,
    "damaged-objects": _damaged_objects,
    "broken-head": _broken_head,
    "read-only-git-dir": _read_only_git_dir,
    "worktree-config": _worktree_config,
    "no-reflogs": _logged_off,
    "tracked-but-ignored": _tracked_but_ignored,
    "all-deleted": _everything_deleted_but_tracked,
}


def _work(box: Box) -> None:
    """What an agent might do to the files."""
    box.write("a.txt", "the agent's\n").remove("sub").write("new/file", "new\n").symlink("l", "new")
    box.write("sub", "a file now\n")


def _status(box: Box) -> bytes:
    return box.git("--no-optional-locks", "status", "--porcelain=v2", "--branch", ok=False)


@pytest.mark.parametrize("state", STATES)
def test_files_come_back(box: Box, state: str) -> None:
    STATES[state](box)
    before = _status(box)

    checkpoint = box.round_trip(lambda: _work(box))

    box.restore(checkpoint)
    assert _status(box) == before


@pytest.mark.parametrize("state", ["merge", "rebase", "index-locked", "stash", "bisect"])
def test_a_state_that_arose_after_the_checkpoint(box: Box, state: str) -> None:
    """The user moved on in git; the files go back, HEAD and index stay where they are."""
    box.round_trip(lambda: (STATES[state](box), box.write("later", "x\n")))


@pytest.mark.parametrize("state", ["merge", "detached", "unborn-staged", "staged-differently"])
def test_a_restore_after_the_user_left_that_state(box: Box, state: str) -> None:
    STATES[state](box)
    before = box.picture()
    checkpoint = box.save()
    box.commit("resolved") if state != "detached" else box.git("checkout", "-q", "main")
    box.write("a.txt", "later\n")

    box.restore(checkpoint)

    box.assert_like(before)


def test_another_branch_is_checked_out_since(box: Box) -> None:
    box.git("checkout", "-q", "-b", "other")
    box.write("a.txt", "other\n").write("only-other", "x\n").commit("other")
    before = box.picture()
    checkpoint = box.save()
    box.git("checkout", "-q", "main")

    answer = box.restore(checkpoint)

    box.assert_like(before)
    assert box.git("symbolic-ref", "HEAD").strip() == b"refs/heads/main"
    assert "main" in answer.said or "branch" in answer.said or "HEAD" in answer.said


def test_a_branch_unlike_a_checkpoint_is_said_before(box: Box) -> None:
    checkpoint = box.save()
    box.git("checkout", "-q", "-b", "other")

    answer = box.rewind("restore", checkpoint, "--dry-run")

    assert "other" in answer.said or "branch" in answer.said


# Repositories of unusual make. Each builds the project of an empty box.


def _fill(box: Box) -> Box:
    return box.write("a.txt", "a\n").write("sub/b.txt", "b\n").commit()


def _origin(box: Box) -> str:
    """A repository elsewhere with three commits."""
    origin = f"{box.root}/origin"
    os.makedirs(origin)
    box.init(where=origin)
    for number in range(3):
        box.write(f"{origin}/a.txt", f"{number}\n").write(f"{origin}/sub/b.txt", "b\n")
        box.commit(str(number), cwd=origin)
    box.git("config", "uploadpack.allowFilter", "true", cwd=origin)
    box.git("config", "uploadpack.allowAnySHA1InWant", "true", cwd=origin)
    return origin


def _clone(box: Box, *options: str) -> None:
    origin = _origin(box)
    os.rmdir(box.project)
    box.git("clone", "-q", *options, f"file://{origin}", box.project, cwd=box.root)
    box.watched.append(origin)


def _linked_worktree(box: Box) -> None:
    main = f"{box.root}/main"
    os.makedirs(main)
    box.init(where=main)
    box.write(f"{main}/a.txt", "a\n").write(f"{main}/sub/b.txt", "b\n").commit(cwd=main)
    os.rmdir(box.project)
    box.git("worktree", "add", "-q", box.project, cwd=main)
    box.watched.append(main)


def _worktree_of_a_bare_repository(box: Box) -> None:
    origin = _origin(box)
    bare = f"{box.root}/bare.git"
    box.git("clone", "-q", "--bare", origin, bare, cwd=box.root)
    os.rmdir(box.project)
    box.git("worktree", "add", "-q", box.project, cwd=bare)
    box.watched.append(bare)


def _bare_repository_beside_its_worktree(box: Box) -> None:
    """The popular layout: project/.bare, and project/.git a file that names it."""
    origin = _origin(box)
    os.rmdir(box.project)
    os.makedirs(box.project)
    box.git("clone", "-q", "--bare", origin, box.path(".bare"), cwd=box.root)
    box.git("worktree", "add", "-q", box.path("wt"), cwd=box.path(".bare"))
    box.watched.append(box.path(".bare"))
    box.project = box.path("wt")


def _separate_git_dir(box: Box) -> None:
    box.init(f"--separate-git-dir={box.root}/elsewhere.git")
    _fill(box)
    box.watched.append(f"{box.root}/elsewhere.git")


def _git_dir_as_symlink(box: Box) -> None:
    _fill(box.init())
    os.rename(box.path(".git"), f"{box.root}/elsewhere")
    box.symlink(".git", f"{box.root}/elsewhere")
    box.watched.append(f"{box.root}/elsewhere")


def _core_worktree(box: Box) -> None:
    """The git dir is elsewhere, and its configuration names the folder."""
    box.git("init", "-q", "-b", "main", "--template=", "--bare", f"{box.root}/repo.git")
    box.git("config", "core.bare", "false", cwd=f"{box.root}/repo.git")
    box.git("config", "core.worktree", box.project, cwd=f"{box.root}/repo.git")
    box.write(".git", f"gitdir: {box.root}/repo.git\n")
    _fill(box)
    box.watched.append(f"{box.root}/repo.git")


def _alternates(box: Box) -> None:
    origin = _origin(box)
    os.rmdir(box.project)
    box.git("clone", "-q", "--shared", origin, box.project, cwd=box.root)
    box.watched.append(origin)


def _shallow(box: Box) -> None:
    _clone(box, "--depth=1")


def _partial_and_offline(box: Box) -> None:
    _clone(box, "--filter=blob:none")
    origin = box.watched.pop()
    shutil.rmtree(origin)
    # Asking the promisor for anything would run this.
    box.git("config", "remote.origin.url", f"ext::touch {box.canary}")
    box.git("config", "protocol.ext.allow", "always")


def _sha256(box: Box) -> None:
    _fill(box.init("--object-format=sha256"))


def _reftable(box: Box) -> None:
    made = subprocess.run(
        ["git", "init", "-q", "--template=", "--ref-format=reftable", box.project],
        env=box.env,
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("this git has no reftable")
    _fill(box)


def _shared_group(box: Box) -> None:
    _fill(box.init("--shared=group"))


def _inside_a_repository_that_ignores_it(box: Box) -> None:
    """A project below another repository, which ignores it."""
    box.init(where=box.root)
    box.write(f"{box.root}/.gitignore", "*\n")
    box.watched.append(f"{box.root}/.git")
    _fill(box.init())


MAKES: dict[str, State] = {
    "linked-worktree": _linked_worktree,
    "worktree-of-bare": _worktree_of_a_bare_repository,
    "bare-beside-worktree": _bare_repository_beside_its_worktree,
    "separate-git-dir": _separate_git_dir,
    "git-dir-symlink": _git_dir_as_symlink,
    "core.worktree": _core_worktree,
    "alternates": _alternates,
    "shallow": _shallow,
    "partial-offline": _partial_and_offline,
    "sha256": _sha256,
    "reftable": _reftable,
    "shared-group": _shared_group,
    "inside-another": _inside_a_repository_that_ignores_it,
}


@pytest.mark.parametrize("make", MAKES)
def test_files_come_back_in_a_repository_of_make(bare_box: Box, make: str) -> None:
    MAKES[make](bare_box)
    before = _status(bare_box)

    checkpoint = bare_box.round_trip(lambda: _work(bare_box))

    bare_box.restore(checkpoint)
    assert _status(bare_box) == before


def test_two_linked_worktrees_have_timelines_of_their_own(bare_box: Box) -> None:
    _linked_worktree(bare_box)
    main = f"{bare_box.root}/main"
    bare_box.watched = [f"{main}/.git"]
    bare_box.write("a.txt", "in the linked one\n")
    linked = bare_box.save()
    bare_box.write(f"{main}/a.txt", "in main\n")
    in_main = bare_box.save(at=main)
    bare_box.write(f"{main}/a.txt", "changed\n").write("a.txt", "changed\n")

    assert [item["id"] for item in bare_box.checkpoints()] == [linked]
    bare_box.restore(linked)
    assert bare_box.read("a.txt") == b"in the linked one\n"
    assert bare_box.read(f"{main}/a.txt") == b"changed\n"
    bare_box.restore(in_main, at=main)
    assert bare_box.read(f"{main}/a.txt") == b"in main\n"


@pytest.mark.parametrize("cone", ["--cone", "--no-cone"])
def test_a_sparse_checkout_whose_files_are_elsewhere(box: Box, cone: str) -> None:
    """`git sparse-checkout` moves core.worktree out of the configuration that names it."""
    files = f"{box.root}/files"
    os.mkdir(files)
    box.git("config", "core.worktree", files)
    box.git("checkout", "-qf", "main")
    box.git("sparse-checkout", "set", cone, "sub")
    checkpoint = box.save()
    before = picture(files)
    box.write(f"{files}/sub/b.txt", "changed").write("a.txt", "not of this worktree any more")

    box.restore(checkpoint)

    assert picture(files) == before
    assert box.read("a.txt") == b"not of this worktree any more"


@pytest.mark.parametrize(("one", "other"), [
    ("wt.1", "wt-1"), ("\u00e9", "\u00e8"), ("\udcff", "\udcfe"),
    ("w" * 255, "w" * 254), ("\u00e9" * 127, "\u00e8" * 127), (" ", "\n"),
], ids=ascii)
def test_linked_worktrees_with_names_much_alike(box: Box, one: str, other: str) -> None:
    ids = []
    for number, name in enumerate((one, other)):
        folder = f"{box.root}/{name}"
        box.git("worktree", "add", "-q", "-b", f"b{number}", folder)
        box.write(f"{folder}/file", name.encode(errors="surrogateescape"))
        ids.append(box.save(at=folder))
        found = box.rewind("list", at=folder)["checkpoints"]
        assert [item["id"] for item in found] == ids[-1:]
        box.write(f"{folder}/file", "changed")
        box.restore(ids[-1], at=folder)
        with open(f"{folder}/file", "rb") as file:
            assert os.fsdecode(file.read()) == name


def test_a_linked_worktree_inside_the_project(box: Box) -> None:
    """As agents make them: project/.worktrees/x. Its .git file and its files stay whole."""
    checkpoint = box.save()
    box.git("worktree", "add", "-q", ".worktrees/x")
    box.write(".worktrees/x/a.txt", "work in progress\n").write("a.txt", "changed\n")

    box.restore(checkpoint, ok=False)

    assert box.read("a.txt") == b"a\n"
    assert box.read(".worktrees/x/a.txt") == b"work in progress\n"
    assert box.exists(".worktrees/x/.git")


def test_a_moved_repository_finds_its_checkpoints(box: Box) -> None:
    checkpoint = box.save()
    moved = f"{box.root}/moved"
    os.rename(box.project, moved)
    box.project = moved
    box.write("a.txt", "changed\n")

    box.restore(checkpoint)

    assert box.read("a.txt") == b"a\n"


def test_a_copied_repository_and_its_original_do_not_disturb_each_other(box: Box) -> None:
    box.save()
    copy = f"{box.root}/copy"
    subprocess.run(["cp", "-a", box.project, copy], check=True)
    box.write("a.txt", "original\n").write(f"{copy}/a.txt", "copy\n")
    original, copied = box.save(), box.save(at=copy)
    box.write("a.txt", "x\n").write(f"{copy}/a.txt", "x\n")

    box.restore(original)
    box.restore(copied, at=copy)

    assert box.read("a.txt") == b"original\n"
    assert box.read(f"{copy}/a.txt") == b"copy\n"


def test_a_broken_configuration_is_no_bug(box: Box) -> None:
    """Git itself cannot work here; a clear word, or the files come back all the same."""
    box.write(".git/config", "[core\nbroken")
    answer = box.rewind("save", ok=False)
    if answer.code == 0:
        box.write("a.txt", "changed\n")
        box.restore(str(answer["id"]))
        assert box.read("a.txt") == b"a\n"


@pytest.mark.parametrize("content", ["gitdir: /nowhere/at/all\n", "nonsense\n", ""])
def test_a_git_file_that_leads_nowhere(plain: Box, content: str) -> None:
    """Not a repository any more: exit 1 with a word, or protected as a plain folder."""
    plain.write(".git", content)
    answer = plain.rewind("save", ok=False)
    if answer.code == 0:
        plain.write("a.txt", "changed\n")
        plain.restore(str(answer["id"]))
        assert plain.read("a.txt") == b"a\n"


def test_an_empty_git_folder_makes_no_repository(plain: Box) -> None:
    plain.mkdir(".git")

    plain.round_trip(lambda: _work(plain))


def test_the_index_is_put_back_when_asked(box: Box) -> None:
    box.write("a.txt", "staged\n")
    box.git("add", "a.txt")
    box.write("a.txt", "worktree\n")
    before = box.git("diff", "--cached")
    checkpoint = box.save()
    box.git("reset", "-q", "--hard")

    box.git_may_change = True
    box.restore(checkpoint, "--index")

    assert box.read("a.txt") == b"worktree\n"
    assert box.git("diff", "--cached") == before


def test_the_index_is_put_back_to_nothing_staged(box: Box) -> None:
    checkpoint = box.save()
    box.write("new", "x").write("a.txt", "changed\n").commit("later")
    box.write("a.txt", "staged\n").git("add", "a.txt")

    box.git_may_change = True
    box.restore(checkpoint, "--index")

    assert box.git("ls-files", "--stage") == box.git("ls-tree", "-r", "HEAD~1").replace(
        b" blob ", b" ").replace(b"\t", b" 0\t")
    box.rewind("undo-restore")
    assert box.git("diff", "--cached", "--name-only") == b"a.txt\n", "undone with the rest"


def test_the_index_of_a_sparse_checkout_stays_sparse(box: Box) -> None:
    box.write("out/c.txt", "c\n").commit()
    box.git("sparse-checkout", "set", "--cone", "sub")
    box.write("sub/b.txt", "staged\n").git("add", "sub/b.txt")
    before = box.git("status", "--porcelain")
    checkpoint = box.save()
    box.git("reset", "-q", "--hard")

    box.git_may_change = True
    box.restore(checkpoint, "--index")

    assert box.git("status", "--porcelain") == before == b"M  sub/b.txt\n"


def test_the_index_of_a_conflict_is_put_back(box: Box) -> None:
    box.git("checkout", "-q", "-b", "other")
    box.write("a.txt", "theirs\n").commit()
    box.git("checkout", "-q", "main")
    box.write("a.txt", "ours\n").commit()
    box.git("merge", "-q", "other", ok=False)
    before = box.git("ls-files", "--stage")
    checkpoint = box.save()
    box.git("add", "-A")

    box.git_may_change = True
    box.restore(checkpoint, "--index")

    assert box.git("ls-files", "--stage") == before
    assert before.count(b"a.txt") == 3


def test_a_repository_with_hooks_runs_none(box: Box) -> None:
    names = ["pre-commit", "post-commit", "post-checkout", "post-index-change", "pre-auto-gc"]
    names += ["reference-transaction", "post-rewrite", "fsmonitor-watchman", "commit-msg"]
    for name in names:
        box.write(f".git/hooks/{name}", f"#!/bin/sh\ntouch {box.canary}\n", 0o755)
    box.git("config", "--global", "core.hooksPath", box.path(".git/hooks"))

    box.round_trip(lambda: _work(box))
    box.rewind("gc")
