"""What commands say to people: the list's columns, command lines that make no sense, odd places."""

import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

import click
import pytest

from coderewind.cli import quick, showing
from coderewind.cli.app import App
from coderewind.cli.save import save
from coderewind.cli.top import rewind
from coderewind.model.records import CHECKPOINT, Checkpoint, Record

from .box import Box


def _said(box: Box, *words: str, **env: str) -> tuple[int, str, str]:
    process = box.start("-C", box.project, *words, env=box.env | env)
    out, err = process.communicate(timeout=60)
    return process.returncode, out.decode("latin1"), err.decode()


# ---- a command line that makes no sense


@pytest.mark.parametrize(
    ("words", "said", "advice"),
    [
        (["savee"], "no such command 'savee'", "did you mean 'save'?"),
        (["list", "--limt", "3"], "no such option '--limt'", "did you mean '--limit'?"),
        (["show"], "missing argument 'CP'", "rewind show --help"),
        (["diff", "1", "2", "3"], "unexpected extra argument (3)", "rewind diff --help"),
        (["undo", "0"], "invalid value for N: 0 is not in the range x>=1", "rewind undo --help"),
        (["restore", "--continue", "--dry-run"], "no other option fits", "rewind restore --help"),
        (["restore", "--abort", "--path", "a"], "no other option fits", "rewind restore --help"),
        (["config", "--unset"], "--unset and --project go with a KEY", "rewind config --help"),
        (["config", "--project"], "--unset and --project go with a KEY", "rewind config --help"),
        (["config", "tier", "exact", "--unset"], "give VALUE or --unset", "rewind config --help"),
    ],
)
def test_what_is_not_understood_is_said_in_a_line_with_advice(
    plain: Box, words: list[str], said: str, advice: str
) -> None:
    code, out, err = _said(plain, *words)

    assert (code, out) == (2, "")
    first, second = err.splitlines()
    assert first.startswith("rewind: ")
    assert said in first
    assert advice in second


def test_what_is_not_understood_is_json_for_a_program(plain: Box) -> None:
    code, out, _ = _said(plain, "list", "--json", "--nonsense")

    assert code == 2
    assert json.loads(out)["error"]["message"] == "no such option '--nonsense'"


@pytest.mark.parametrize(("raised", "code", "said"), [
    ("ValueError('my ' + 'words')", 3, "this is a bug in Rewind (ValueError); a report is in "),
    ("KeyboardInterrupt", 130, "interrupted"),
])
@pytest.mark.parametrize("words", [["list", "--json"], ["show", "@", "--json"]])
def test_every_end_is_one_document_for_a_program(
    plain: Box, words: list[str], raised: str, code: int, said: str
) -> None:
    plain.save()
    plain.write(f"{plain.root}/inject/sitecustomize.py",
                "from coderewind.engine.engine import Engine\n"
                f"def fail(*_): raise {raised}\n"
                "Engine.timeline = fail\n")
    path = f"{plain.root}/inject:{plain.env['PYTHONPATH']}"

    ended, out, err = _said(plain, *words, PYTHONPATH=path)

    assert ended == code
    assert json.loads(out)["error"]["message"].startswith(said)
    assert err.lstrip("\n").startswith(f"rewind: {said}")
    if code == 3:
        report = plain.read(err.rpartition(" ")[2].strip()).decode()
        assert "ValueError" in report
        assert "my words" not in report + err + out


def test_without_a_command_the_help_is_shown_as_a_mistake(plain: Box) -> None:
    code, out, err = _said(plain)

    assert (code, out) == (2, "")
    assert "Commands:" in err


def test_a_terminal_that_cannot_show_a_sign_still_shows_the_rest(plain: Box) -> None:
    plain.save("naïve ▸")

    code, out, err = _said(plain, "list", PYTHONIOENCODING="latin1")

    assert code == 0, err
    assert "na\u00efve \\u25b8" in out


# ---- a save without the parser


@pytest.mark.parametrize(
    "words",
    [
        [], ["text"], [""], ["--json"], ["a b", "--json"], ["--json", "a"], ["-m", "x"],
        ["--message", "--json"], ["--message=-x"], ["--message="], ["-m", "-x", "--json"],
        ["-m"], ["--mess=x"], ["a", "b"], ["-mx"], ["a", "-m", "x"], ["--", "-x"], ["-"],
        ["--help"], ["-h"], ["-C", ".", "x"], ["--nonsense"], ["--json", "--json"],
    ],
)
def test_a_save_read_quickly_is_read_as_the_parser_reads_it(words: list[str]) -> None:
    label = quick.save_label(words)

    if label is not None:
        above = click.Context(rewind, **rewind.context_settings)
        told = save.make_context("save", list(words), above).params
        wanted = told["description"] if told["description"] is not None else told["message"]
        assert label == (wanted or "")
        assert told["as_json"] == ("--json" in words)
        assert told["directories"] == ()


@pytest.mark.parametrize("words", [[], ["text"], ["--json"], ["-m", "x"], ["--message=-x"]])
def test_the_plain_forms_of_a_save_are_read_quickly(words: list[str]) -> None:
    assert quick.save_label(words) is not None


@pytest.mark.parametrize("words", [["save", "x"], ["save", "--json"], ["list"], ["list", "--all"]])
def test_a_plain_save_or_list_loads_no_parser(plain: Box, words: list[str]) -> None:
    plain.save()
    code, _, err = _said(plain, *words, PYTHONVERBOSE="1")

    assert code == 0
    loaded = set(re.findall(r"^import '?([\w.]+)", err, re.M))
    assert "coderewind.store.capture" in loaded
    assert loaded & {"click", "typing", "inspect", "coderewind.engine.moving"} == set()


# ---- the list


def _checkpoint(number: int, label: str, **facts: object) -> Checkpoint:
    data: dict[str, object] = {"id": f"c{number}", "op": CHECKPOINT, "time": 0, "number": number,
                               "label": label, "kind": "save", "snapshot": "0" * 40, **facts}
    return Checkpoint(Record(data), "main")


def test_the_columns_of_a_list_are_as_wide_as_they_must_be(
    capsys: pytest.CaptureFixture[str]
) -> None:
    pinned = _checkpoint(2, "日本語", files=1)
    pinned.pinned = True

    showing.checkpoint_lines([_checkpoint(113, "plain", files=12), pinned])

    above, below = capsys.readouterr().out.splitlines()
    assert above.startswith("  #113  ")
    assert below.startswith("    #2  ")
    assert "★ 日本語" in below
    assert showing.width(above) == showing.width(below)


def test_a_label_is_cut_to_what_the_terminal_leaves(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "70")

    showing.checkpoint_lines([_checkpoint(1, "word " * 40, files=3, anchor={"agent": "claude"})])

    line = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out.rstrip("\n"))
    assert showing.width(line) == 70
    assert "…" in line
    assert line.endswith("claude")


@pytest.mark.parametrize("text", ["short", "日本語のラベルです", "e\u0301" * 9, ""])
def test_a_cell_has_its_width_whatever_is_in_it(text: str) -> None:
    for size in (3, 8, 30):
        assert showing.width(showing.pad(text, size)) == size


def test_the_statistics_of_a_diff_fit_the_screen(plain: Box) -> None:
    plain.save()
    plain.write("sub/" + "long-" * 30 + "name.txt", "x\n" * 500)

    code, out, err = _said(plain, "diff", "--stat")

    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 80
    assert os.path.basename(out.splitlines()[0].split("|")[0]).strip().endswith("name.txt")


# ---- what did not go all the way


def test_fewer_steps_than_asked_for_are_said(plain: Box) -> None:
    plain.save()
    plain.write("a.txt", "changed\n")

    code, _, err = _said(plain, "undo", "5")

    assert code == 0
    assert "1 step of the 5" in err
    assert plain.read("a.txt") == b"a\n"


def test_an_undo_that_fails_at_its_second_step_says_so(plain: Box) -> None:
    plain.write("place/file", "x").write("a.txt", "one\n").save()
    plain.remove("place").write("a.txt", "two\n").save()
    plain.write("a.txt", "three\n").save()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(plain.path("place"))

        code, _, err = _said(plain, "undo", "2")

    assert code == 1
    assert "place" in err
    assert plain.read("a.txt") == b"two\n", "the first step was made"


def test_an_age_before_the_first_checkpoint_names_the_first(plain: Box) -> None:
    plain.save()

    code, _, err = _said(plain, "show", "3 days ago")

    assert code == 1
    assert "the oldest is #1" in err


def test_a_setting_that_a_stronger_one_hides_is_said(plain: Box) -> None:
    plain.save()
    _said(plain, "config", "retention.maxSnapshots", "20", "--project")

    code, out, _ = _said(plain, "config", "retention.maxSnapshots", "10")

    assert code == 0
    assert "retention.maxSnapshots = 20  (project)" in out
    assert "the project setting is stronger" in out


def test_validate_names_every_problem(plain: Box) -> None:
    os.makedirs(plain.store_home)
    plain.write(f"{plain.store_home}/config.json",
                '{"tier": 3, "bogus": {"a": 1}, "retention": {"maxSnapshots": "x"}}')

    answer = plain.rewind("validate", ok=False)

    assert answer.code == 1
    assert len(answer["problems"]) == 3
    for name in ("tier", "'bogus'", "retention.maxSnapshots"):
        assert any(name in problem for problem in answer["problems"]), name


def test_doctor_says_what_it_could_not_mend(plain: Box) -> None:
    plain.save("gone")
    plain.write("a.txt", "changed\n").save("here")
    packs = f"{plain.store()}/objects/pack"
    for name in os.listdir(packs):
        os.unlink(f"{packs}/{name}")

    code, out, err = _said(plain, "doctor", "--repair")
    assert code == 1
    assert "lost: of these checkpoints only the record is left: #1" in out
    assert "all is well" not in out
    assert "1 checkpoint could not be mended" in err

    code, out, err = _said(plain, "doctor")
    assert (code, err) == (0, "")
    assert "all is well" in out


def test_a_damaged_journal_is_said_with_its_cure(plain: Box) -> None:
    plain.save()
    private = os.path.dirname(plain.store()) + "/worktrees/main"
    plain.write(f"{private}/journal.json", "{")

    _, _, err = _said(plain, "status")
    assert err == "rewind: the journal of a restore is damaged: rewind doctor --repair removes it\n"


def test_restoring_the_index_is_said(box: Box) -> None:
    box.write("a.txt", "staged\n").git("add", "a.txt")
    first = box.save()
    box.git("reset", "-q")

    for words in (["--dry-run"], ["--yes"]):
        code, out, err = _said(box, "restore", first, "--index", *words)
        assert code == 0, err
        assert "what was staged then is staged again" in out
    assert box.git("diff", "--cached", "--name-only") == b"a.txt\n"


# ---- a terminal


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("term", "shown"), [("xterm", True), ("dumb", False), ("", False)])
def test_long_work_is_shown_on_a_terminal_that_can_clear_a_line(
    monkeypatch: pytest.MonkeyPatch, term: str, *, shown: bool
) -> None:
    screen, clock = _Terminal(), iter([100.0, 100.1, 101.0, 101.01, 102.0, 103.0, 104.0])
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))

    app = App(None, as_json=False)
    app.progress("captured", 1)  # too soon: most work ends sooner than it can be read
    app.progress("captured", 1234)
    app.progress("captured", 1235)  # the line was drawn just now
    app.progress("looked at", 1)
    app.progress("read", 3 << 30)
    app.progress("compacting the store", 0)
    app.end_progress()

    lines = ["", "captured 1,234 files …", "looked at 1 folder …", "read 3.0 GiB …",
             "compacting the store …", ""]
    assert screen.getvalue().split("\r\x1b[K") == (lines if shown else [""])


@pytest.mark.parametrize("words", [["save"], ["restore", "1", "--yes"], ["doctor"], ["gc"]])
def test_long_work_tells_how_far_it_is(plain: Box, words: list[str]) -> None:
    """Each of these says something of its progress, for whoever shows it."""
    plain.write("big", os.urandom(5 << 20))
    plain.save()
    plain.write("big", os.urandom(5 << 20))
    plain.write(f"{plain.root}/inject/sitecustomize.py",
                "from coderewind.cli.app import App\n"
                "App.progress = lambda _, verb, count: print(verb, count)\n")
    path = f"{plain.root}/inject:{plain.env['PYTHONPATH']}"

    code, out, err = _said(plain, *words, PYTHONPATH=path)

    assert code == 0, err
    wanted = {"save": ["looked at 2", "captured 1", f"read {5 << 20}", f"stored {5 << 20}"],
              "restore": ["looked at 2", "made ready 1", "restored 1"],
              "doctor": ["checked 1"], "gc": ["compacting the store 0"]}
    for line in wanted[words[0]]:
        assert line in out.splitlines(), line


# ---- completion


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["show", ""], {"1", "2"}),
        (["restore", "2"], {"2"}),
        (["restore", "good"], {"good state"}),
        (["diff", "1", ""], {"1", "2"}),
        (["un"], {"undo", "undo-restore", "unpin"}),
        (["list", "--a"], {"--all"}),
        (["config", "filters.p"], {"filters.preset"}),
        (["config", "filters.preset", ""], {"exact", "smart"}),
        (["config", "autoInit", ""], {"true", "false"}),
    ],
)
def test_a_shell_is_offered_commands_options_and_checkpoints(
    plain: Box, words: list[str], offered: set[str]
) -> None:
    plain.save()
    plain.write("a.txt", "changed\n").save("good state")
    typed = ["rewind", "-C", plain.project, *words]

    code, out, err = _said(plain, _REWIND_COMPLETE="fish_complete", COMP_WORDS=" ".join(typed),
                           COMP_CWORD=typed[-1])

    assert code == 0, err
    found = {line.partition(",")[2].partition("\t")[0] for line in out.splitlines()}
    assert offered <= found


_NASTY = "it's \"a\" $(touch canary) * a,b"


@pytest.mark.parametrize(
    ("shell", "script"),
    [
        ("bash", """
            eval "$(rewind completion bash)"
            COMP_WORDS=(rewind restore "$TYPED") COMP_CWORD=2
            _rewind_completion rewind
            eval "printf %s ${COMPREPLY[0]}"
         """),
        ("fish", """
            rewind completion fish | source
            printf %s (complete --do-complete="rewind restore $TYPED" | string split \\t)[1]
         """),
    ],
)
@pytest.mark.parametrize("typed", ["it", "it\\'s", "it\\'s\\ "])
def test_a_completed_label_is_one_word_and_runs_nothing(
    plain: Box, shell: str, script: str, typed: str
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    plain.save(_NASTY)
    plain.write(f"{plain.root}/bin/rewind",
                f'#!/bin/sh\nexec {sys.executable} -m coderewind "$@"\n', 0o755)

    env = plain.env | {"PATH": f"{plain.root}/bin:{plain.env['PATH']}", "TYPED": typed}

    done = subprocess.run([shell, "-c", script], cwd=plain.project, env=env, capture_output=True,
                          check=False, timeout=60)

    assert done.stdout.decode() == _NASTY, done.stderr.decode()
    assert not plain.exists("canary")


@pytest.mark.parametrize(
    ("words", "offered"),
    [(["restore", "--path", "su"], "file,su"), (["diff", "1", "--", "su"], "file,su"),
     (["-C", "su"], "dir,su"), (["list", "-C", "su"], "dir,su")],
)
def test_a_shell_is_told_to_offer_paths(plain: Box, words: list[str], offered: str) -> None:
    plain.save()
    typed = ["rewind", *words]

    code, out, err = _said(plain, _REWIND_COMPLETE="bash_complete", COMP_WORDS=" ".join(typed),
                           COMP_CWORD=str(len(words)))

    assert code == 0, err
    assert out.split() == [offered]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_both_names_of_the_command_are_completed(plain: Box, shell: str) -> None:
    code, out, err = _said(plain, "completion", shell)

    assert code == 0, err
    assert "_REWIND_COMPLETE" in out
    assert "coderewind" in out
