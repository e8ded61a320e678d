"""Any environment: what leaks in from the caller, and what is missing."""

import os
import shutil
import sys
from collections.abc import Callable

import pytest

from .box import PROGRAM, Box

LEAKS: dict[str, Callable[[Box], dict[str, str]]] = {
    "GIT_DIR": lambda box: {"GIT_DIR": f"{box.root}/other/.git"},
    "GIT_DIR-relative": lambda box: {"GIT_DIR": ".git"},
    "GIT_WORK_TREE": lambda box: {
        "GIT_WORK_TREE": f"{box.root}/other",
        "GIT_DIR": f"{box.root}/other/.git",
    },
    "GIT_INDEX_FILE": lambda box: {"GIT_INDEX_FILE": f"{box.root}/other/index"},
    "GIT_OBJECT_DIRECTORY": lambda box: {"GIT_OBJECT_DIRECTORY": f"{box.root}/other/objects"},
    "GIT_ALTERNATES": lambda box: {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{box.root}/other/.git/objects"
    },
    "GIT_COMMON_DIR": lambda box: {"GIT_COMMON_DIR": f"{box.root}/other/.git"},
    "GIT_NAMESPACE": lambda box: {"GIT_NAMESPACE": "elsewhere"},
    "GIT_PREFIX": lambda box: {"GIT_PREFIX": "sub/"},
    "GIT_QUARANTINE_PATH": lambda box: {"GIT_QUARANTINE_PATH": f"{box.root}/other"},
    "GIT_CEILING_DIRECTORIES": lambda box: {"GIT_CEILING_DIRECTORIES": box.project},
    "GIT_LITERAL_PATHSPECS": lambda box: {"GIT_LITERAL_PATHSPECS": "1"},
    "GIT_GLOB_PATHSPECS": lambda box: {"GIT_ICASE_PATHSPECS": "1", "GIT_GLOB_PATHSPECS": "1"},
    "GIT_CONFIG": lambda box: {"GIT_CONFIG": f"{box.root}/other/config"},
    "GIT_CONFIG_GLOBAL": lambda box: {"GIT_CONFIG_GLOBAL": f"{box.root}/other/config"},
    "GIT_CONFIG_COUNT": lambda box: {
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": "core.autocrlf",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_CONFIG_KEY_1": "core.fsmonitor",
        "GIT_CONFIG_VALUE_1": f"touch {box.canary}",
        "GIT_CONFIG_KEY_2": "core.worktree",
        "GIT_CONFIG_VALUE_2": f"{box.root}/other",
    },
    "GIT_CONFIG_COUNT-broken": lambda box: {"GIT_CONFIG_COUNT": "many"},
    "GIT_CONFIG_PARAMETERS": lambda box: {
        "GIT_CONFIG_PARAMETERS": f"'core.bare=true' 'core.hooksPath={box.root}/other'"
    },
    "GIT_ATTR": lambda box: {"GIT_ATTR_SOURCE": "HEAD", "GIT_ATTR_NOSYSTEM": "1"},
    "GIT_DEFAULT_HASH": lambda box: {"GIT_DEFAULT_HASH": "sha256"},
    "GIT_DEFAULT_REF_FORMAT": lambda box: {"GIT_DEFAULT_REF_FORMAT": "reftable"},
    "GIT_REPLACE": lambda box: {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_REPLACE_REF_BASE": "refs/x/"},
    "GIT_GRAFT_FILE": lambda box: {"GIT_GRAFT_FILE": f"{box.root}/other/config"},
    "GIT_SHALLOW_FILE": lambda box: {"GIT_SHALLOW_FILE": f"{box.root}/other/config"},
    "GIT_TEMPLATE_DIR": lambda box: {"GIT_TEMPLATE_DIR": f"{box.root}/other"},
    "GIT_EXEC_PATH": lambda box: {"GIT_EXEC_PATH": f"{box.root}/nowhere"},
    "GIT_TRACE": lambda box: {"GIT_TRACE": "1", "GIT_TRACE2": "1", "GIT_TRACE_SETUP": "2"},
    "GIT_EXTERNAL_DIFF": lambda box: {
        "GIT_EXTERNAL_DIFF": f"touch {box.canary}",
        "GIT_PAGER": f"touch {box.canary}",
        "PAGER": f"touch {box.canary}",
        "GIT_EDITOR": f"touch {box.canary}",
        "GIT_SSH_COMMAND": f"touch {box.canary}",
        "GIT_ASKPASS": f"touch {box.canary}",
    },
    "GIT_IDENTITY": lambda box: {
        "GIT_AUTHOR_DATE": "nonsense",
        "GIT_COMMITTER_DATE": "nonsense",
        "GIT_AUTHOR_NAME": "",
        "GIT_COMMITTER_EMAIL": "",
    },
    "GIT_OPTIONS": lambda box: {
        "GIT_DIFF_OPTS": "-u0",
        "GIT_FLUSH": "0",
        "GIT_MERGE_VERBOSITY": "5",
    },
    "GIT_INTERNAL_SUPER_PREFIX": lambda box: {"GIT_INTERNAL_SUPER_PREFIX": "x/"},
    "GIT_IMPLICIT_WORK_TREE": lambda box: {"GIT_IMPLICIT_WORK_TREE": "0"},
    "GIT_OPTIONAL_LOCKS": lambda box: {"GIT_OPTIONAL_LOCKS": "1"},
    "GIT_TEST": lambda box: {"GIT_TEST_FSMONITOR": f"{box.root}/x", "GIT_TEST_SPLIT_INDEX": "1"},
    "C-locale": lambda box: {"LC_ALL": "C"},
    "posix-locale": lambda box: {
        "LC_ALL": "POSIX",
        "LANG": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    },
    "ascii-io": lambda box: {"LC_ALL": "C", "PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0"},
    "unknown-locale": lambda box: {"LC_ALL": "xx_YY.UTF-9", "LANGUAGE": "de:fr"},
    "display": lambda box: {"COLUMNS": "1", "LINES": "0", "TERM": "dumb", "NO_COLOR": ""},
    "display-odd": lambda box: {
        "COLUMNS": "wide",
        "TERM": "",
        "FORCE_COLOR": "1",
        "CLICOLOR_FORCE": "1",
    },
    "python": lambda box: {"PYTHONHASHSEED": "0", "PYTHONOPTIMIZE": "2", "PYTHONUNBUFFERED": "1"},
    "python-warnings": lambda box: {"PYTHONWARNINGS": "default", "PYTHONVERBOSE": ""},
    "time-zone": lambda box: {"TZ": "Nowhere/Nothing"},
    "TMPDIR-missing": lambda box: {"TMPDIR": f"{box.root}/nowhere"},
    "TMPDIR-empty": lambda box: {"TMPDIR": ""},
    "SHELL": lambda box: {
        "SHELL": "/bin/false",
        "BASH_ENV": f"{box.root}/x",
        "ENV": f"{box.root}/x",
    },
    "HOME-missing": lambda box: {"HOME": f"{box.root}/nowhere"},
    "HOME-relative": lambda box: {"HOME": "."},
}


def _other_repository(box: Box) -> None:
    other = f"{box.root}/other"
    os.makedirs(other)
    box.init(where=other)
    box.write(f"{other}/other.txt", "other\n").commit(cwd=other)
    box.watched.append(other)


@pytest.mark.parametrize("leak", LEAKS)
def test_leaked_environment(box: Box, leak: str) -> None:
    """Files come back, and the repository that the variables point to is not touched."""
    _other_repository(box)
    environment = box.env | LEAKS[leak](box)
    box.write("new\u00e9.txt", "n\n")
    before = box.picture()

    checkpoint = box.save(env=environment)
    box.write("a.txt", "changed\n").remove("sub").remove("new\u00e9.txt").write("x\u00fc", "x")
    box.restore(checkpoint, env=environment)

    box.assert_like(before)
    # The same store is found with and without the variables.
    assert checkpoint in {item["id"] for item in box.checkpoints("--all")}


@pytest.mark.parametrize("hook", ["pre-commit", "post-commit", "post-checkout", "pre-push"])
def test_inside_a_git_hook(box: Box, hook: str) -> None:
    """Git sets GIT_DIR, GIT_INDEX_FILE and more for its hooks."""
    box.git("init", "-q", "--bare", f"{box.root}/remote")
    words = " ".join(f"'{word}'" for word in [*PROGRAM, "-C", box.project, "save", "--json"])
    box.write(
        f".git/hooks/{hook}", f"#!/bin/sh\n{words} > {box.root}/out 2> {box.root}/err\n", 0o755
    )
    box.write("a.txt", "in the hook\n").write("untracked", "u\n")
    before = box.picture()
    box.git("add", "a.txt")
    box.git("commit", "-q", "-m", "hooked")
    if hook == "post-checkout":
        box.git("checkout", "-q", "-b", "other")
    if hook == "pre-push":
        box.git("push", "-q", f"{box.root}/remote", "main")
    os.remove(box.path(f".git/hooks/{hook}"))
    with open(f"{box.root}/err") as file:
        assert "Traceback" not in file.read()
    box.empty()

    box.restore("@")

    box.assert_like(before)
    assert box.git("--no-optional-locks", "status", "--porcelain") == b"?? untracked\n"


def test_inside_a_hook_of_git_commit_with_paths(box: Box) -> None:
    """Here git uses a temporary index, with a lock on the real one."""
    words = " ".join(f"'{word}'" for word in [*PROGRAM, "-C", box.project, "save", "--json"])
    box.write(".git/hooks/pre-commit", f"#!/bin/sh\n{words} > {box.root}/out\n", 0o755)
    box.write("a.txt", "one\n").write("sub/b.txt", "two\n")
    before = box.picture()
    box.git("commit", "-q", "-m", "only a", "a.txt")
    os.remove(box.path(".git/hooks/pre-commit"))
    box.write("a.txt", "x").write("sub/b.txt", "x")

    box.restore("@")

    box.assert_like(before)
    assert box.git("show", "--name-only", "--format=", "HEAD") == b"a.txt\n"


def test_inside_a_rebase_exec(box: Box) -> None:
    box.write("a.txt", "2\n").commit("two")
    words = " ".join([*PROGRAM, "-C", box.project, "save", "--json"])
    box.git("rebase", "-q", "--exec", f"{words} > {box.root}/out", "HEAD~1")

    assert len(box.checkpoints()) == 1


def test_no_identity_anywhere(box: Box) -> None:
    box.git("config", "--global", "user.useConfigOnly", "true")

    box.round_trip(lambda: box.write("a.txt", "changed\n"))


def test_signing_is_not_tried(box: Box) -> None:
    for key in ("commit.gpgSign", "tag.gpgSign", "push.gpgSign"):
        box.git("config", "--global", key, "true")
    gpg = f"{box.root}/gpg"
    box.write(gpg, f"#!/bin/sh\ntouch {box.canary}\nexit 1\n", 0o755)
    box.git("config", "--global", "gpg.program", gpg)

    box.round_trip(lambda: box.write("a.txt", "changed\n"))


SETTINGS = {
    "core.fsync": "none",
    "core.bare": "false",
    "core.sharedRepository": "0777",
    "core.logAllRefUpdates": "always",
    "core.quotePath": "false",
    "core.packedGitLimit": "1",
    "core.commentChar": "auto",
    "core.alternateRefsCommand": "CANARY",
    "core.sshCommand": "CANARY",
    "core.gitProxy": "CANARY",
    "core.pager": "CANARY",
    "core.editor": "CANARY",
    "core.askPass": "CANARY",
    "credential.helper": "!CANARY",
    "receive.denyCurrentBranch": "refuse",
    "transfer.hideRefs": "refs/",
    "gc.auto": "1",
    "gc.autoDetach": "true",
    "maintenance.auto": "true",
    "init.templateDir": "/nowhere",
    "init.defaultObjectFormat": "sha256",
    "extensions.objectFormat": "sha1",
    "index.sparse": "true",
    "color.ui": "always",
    "color.status": "always",
    "diff.noprefix": "true",
    "diff.mnemonicPrefix": "true",
    "diff.orderFile": "/nowhere",
    "diff.renames": "copies",
    "diff.submodule": "log",
    "log.showSignature": "true",
    "log.date": "iso",
    "log.follow": "true",
    "status.submoduleSummary": "true",
    "submodule.recurse": "true",
    "i18n.commitEncoding": "UTF-16",
    "i18n.logOutputEncoding": "latin1",
    "safe.bareRepository": "explicit",
    "safe.directory": "/nowhere",
    "trace2.eventTarget": "1",
    "advice.addEmbeddedRepo": "true",
    "alias.add": "!CANARY",
    "alias.write-tree": "!CANARY",
    "user.signingKey": "none",
    "uploadpack.packObjectsHook": "CANARY",
    "fetch.fsckObjects": "true",
    "transfer.fsckObjects": "true",
    "core.checkRoundtripEncoding": "UTF-8",
    "core.createObject": "rename",
    "pack.threads": "1",
    "pack.packSizeLimit": "1m",
    "pack.writeReverseIndex": "true",
}


@pytest.mark.parametrize("scope", ["--global", "--local"])
def test_odd_settings_all_at_once(box: Box, scope: str) -> None:
    for key, value in SETTINGS.items():
        if scope == "--local" and key == "extensions.objectFormat":
            continue
        box.git("config", scope, key, value.replace("CANARY", f"touch {box.canary}"))

    box.round_trip(lambda: box.write("a.txt", "changed\n").remove("sub").write("new", "x"))
    box.rewind("list")
    box.rewind("diff", "@-1", "@")
    box.rewind("gc")


def test_the_users_broken_global_configuration(box: Box) -> None:
    """Git refuses to work; a word, not a traceback, or no harm at all."""
    box.write(f"{box.home}/.gitconfig", "[core\n")
    answer = box.rewind("save", ok=False)
    if answer.code == 0:
        box.write("a.txt", "changed")
        box.restore(str(answer["id"]))
        assert box.read("a.txt") == b"a\n"


def test_home_unset(either: Box) -> None:
    del either.env["HOME"]

    either.round_trip(lambda: either.write("a.txt", "changed\n"))


def test_rewind_home_unset(box: Box) -> None:
    environment = {key: value for key, value in box.env.items() if key != "REWIND_HOME"}
    answer = box.rewind("save", env=environment)
    assert os.path.isdir(f"{box.home}/.rewind")
    box.write("a.txt", "changed\n")
    box.restore(str(answer["id"]), env=environment)

    assert box.read("a.txt") == b"a\n"


def test_a_relative_rewind_home(either: Box) -> None:
    """Relative to where? All commands must agree, and none may litter the project."""
    environment = either.env | {"REWIND_HOME": "relative-home"}
    answer = either.rewind("save", ok=False, env=environment)
    if answer.code == 0:
        either.write("a.txt", "changed")
        either.restore(str(answer["id"]), env=environment)
        assert either.read("a.txt") == b"a\n"


def test_an_almost_empty_environment(box: Box) -> None:
    keep = ("PATH", "REWIND_HOME", "PYTHONPATH")
    environment = {key: value for key, value in box.env.items() if key in keep}
    checkpoint = box.save(env=environment)
    box.write("a.txt", "changed")
    box.restore(checkpoint, env=environment)

    assert box.read("a.txt") == b"a\n"


@pytest.mark.parametrize("limit", ["-n 40", "-s 512", "-c 0"])
def test_limits_of_the_process(either: Box, limit: str) -> None:
    for number in range(60):
        either.write(f"d{number}/file", f"{number}")
    either.prefix = ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh"]

    either.round_trip(lambda: either.empty())


def test_a_deep_tree_with_forty_descriptors(either: Box) -> None:
    either.write("d/" * 120 + "file", "deep")
    either.prefix = ["sh", "-c", 'ulimit -n 40; exec "$@"', "sh"]

    either.round_trip(lambda: either.remove("d"))


def test_many_repositories_with_forty_descriptors(either: Box) -> None:
    for number in range(30):
        either.mkdir(f"r{number}/.git/objects").mkdir(f"r{number}/.git/refs")
        either.write(f"r{number}/.git/HEAD", "ref: refs/heads/main\n")
        either.write(f"r{number}/.gitignore", "ignored\n").write(f"r{number}/file", "x")
    either.prefix = ["sh", "-c", 'ulimit -n 40; exec "$@"', "sh"]

    either.round_trip(lambda: [either.write(f"r{n}/file", "y") for n in range(30)])


@pytest.mark.parametrize("closed", ["0", "1", "2", "all"])
def test_standard_channels_closed(either: Box, closed: str) -> None:
    """A file we open must not become the user's standard output, nor the reverse."""
    checkpoint = either.save()
    either.write("a.txt", "changed")
    before = either.picture()
    how = "<&- >&- 2>&-" if closed == "all" else f"{closed}<&-" if closed == "0" else f"{closed}>&-"
    either.prefix = ["sh", "-c", f'exec "$@" {how}', "sh"]
    words = ("-C", either.project, "save", "--json")
    process = either.start(*words)
    process.communicate(timeout=60)
    either.prefix = []

    either.assert_like(before)
    if process.returncode == 0:
        saved = [item["id"] for item in either.checkpoints()]
        assert len(saved) == 2
        either.restore(checkpoint)
        either.restore(saved[0])
        assert either.read("a.txt") == b"changed"


def test_a_reader_that_goes_away(either: Box) -> None:
    """`rewind list | head -1`: no traceback."""
    for _ in range(3):
        either.save()
    either.write("a.txt", "changed")
    for words in (["list"], ["diff"], ["status"], ["show", "1"], ["--help"], ["list", "--json"]):
        read, write = os.pipe()
        os.close(read)
        process = either.start("-C", either.project, *words, stdout=write)
        os.close(write)
        _, error = process.communicate(timeout=60)
        assert (process.returncode, error) == (0, b""), words


@pytest.mark.parametrize("words", [["list"], ["show", "1"], ["status"], ["diff"]])
def test_a_full_disk_behind_standard_output(plain: Box, words: list[str]) -> None:
    plain.save()
    plain.write("a.txt", "changed")
    with open("/dev/full", "wb") as full:
        process = plain.start("-C", plain.project, *words, stdout=full)
        _, error = process.communicate(timeout=60)

    assert process.returncode == 1
    assert error.splitlines()[0] == (
        b"rewind: the result could not be printed: No space left on device")


def test_no_git_on_path_is_a_clear_message(either: Box) -> None:
    os.makedirs(f"{either.root}/bin")
    environment = either.env | {"PATH": f"{either.root}/bin"}

    answer = either.rewind("save", ok=False, env=environment)

    assert answer.code == 1
    assert "git" in answer.said
    either.assert_like(either.picture())


def test_a_git_that_is_not_git(box: Box) -> None:
    os.makedirs(f"{box.root}/bin")
    box.write(f"{box.root}/bin/git", "#!/bin/sh\necho unknown command >&2\nexit 1\n", 0o755)
    environment = box.env | {"PATH": f"{box.root}/bin:{box.env['PATH']}"}

    assert box.rewind("save", ok=False, env=environment).code == 1


def test_a_program_named_git_in_the_project_is_not_run(box: Box) -> None:
    for name in ("git", "python3", "sh", "coderewind.py", "json.py", "subprocess.py"):
        box.write(name, f"#!/bin/sh\ntouch {box.canary}\n", 0o755)
    words = [sys.executable, "-m", "coderewind", "save", "--json"]
    environment = box.env | {"PATH": f"{box.env['PATH']}:."}
    process = box.start(cwd=box.root, env=environment)
    process.communicate(timeout=60)
    assert words

    box.round_trip(lambda: box.write("a.txt", "changed"))


def test_the_store_folder_cannot_be_written(either: Box) -> None:
    """Not exit 0, not a traceback; the files are left alone."""
    either.write(f"{either.root}/a-file", "in the way")
    environment = either.env | {"REWIND_HOME": f"{either.root}/a-file/rewind"}

    with either.expect_unchanged():
        assert either.rewind("save", ok=False, env=environment).code == 1


def test_a_home_where_nothing_can_be_made(plain: Box) -> None:
    answer = plain.rewind("save", ok=False, env=plain.env | {"REWIND_HOME": "/proc/nowhere"})

    assert answer.code == 1
    assert "/proc/nowhere" in answer["error"]["message"]


def test_standard_input_is_not_waited_for(either: Box) -> None:
    checkpoint = either.save()
    either.write("a.txt", "changed")
    read, write = os.pipe()
    try:
        either.restore(checkpoint, stdin=read)
    finally:
        os.close(read)
        os.close(write)

    assert either.read("a.txt") == b"a\n"


def test_without_yes_and_without_a_terminal_nothing_is_restored(either: Box) -> None:
    checkpoint = either.save()
    either.write("a.txt", "changed")

    answer = either.rewind("restore", checkpoint, ok=False)

    assert (answer.code == 0) == (either.read("a.txt") == b"a\n")


def test_low_disk_for_temporary_files_does_not_matter(either: Box) -> None:
    shutil.rmtree(either.tmp)
    either.write(either.tmp, "a file, not a folder")

    either.round_trip(lambda: either.write("a.txt", "changed"))
