"""Pi's and omp's extension folder: put there, brought up to date, taken out; rivals set aside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coderewind.agents.settings import bridge_command

SRC = str(Path(__file__).parents[2] / "src")
THEIRS = "const STORE_REF = 'refs/pi-rewind/store';\nexport default function () {}\n"


class Home:
    """A user with a project, and Pi's folder."""

    def __init__(self, base: Path, agent: str) -> None:
        self.agent = agent
        self.path = base / "home"
        self.project = base / "project"
        self.project.mkdir(parents=True)
        self.dir = self.path / f".{agent}" / "agent"
        self.dir.mkdir(parents=True)
        self.extension = self.dir / "extensions" / "rewind"
        self.settings = self.dir / "settings.json"

    def rewind(self, *args: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.path), "PYTHONPATH": SRC,
               "LANG": "C.UTF-8"}
        ended = subprocess.run([sys.executable, "-m", "coderewind", *args], cwd=self.project,
                               env=env, capture_output=True, text=True, check=False,
                               stdin=subprocess.DEVNULL, timeout=60)
        assert not ok or ended.returncode == 0, ended.stdout + ended.stderr
        return ended

    def init(self, *args: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
        return self.rewind("init", "--agents", self.agent, *args, ok=ok)

    def doctor(self) -> dict[str, Any]:
        rows = json.loads(self.rewind("doctor", "--json", ok=False).stdout)["agents"]
        found: dict[str, Any] = next(row for row in rows if row["agent"] == self.agent)
        return found

    def files(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.dir)): path.read_bytes()
                for path in self.dir.rglob("*") if path.is_file()}

    def put(self, name: str, text: str) -> Path:
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture(params=["pi", "omp"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return Home(tmp_path, request.param)


@pytest.fixture
def pi(tmp_path: Path) -> Home:
    return Home(tmp_path, "pi")


def test_it_is_installed_with_the_command_of_this_interpreter(home: Home) -> None:
    home.init()
    said = json.loads((home.extension / "bridge.json").read_text())
    assert said["command"] == bridge_command()
    assert os.path.isabs(said["command"][0])
    assert json.loads((home.extension / "package.json").read_text())["name"] == "coderewind-pi"
    assert (home.extension / "index.ts").stat().st_mode & 0o077 == 0
    assert home.doctor()["connected"] == [str(home.extension)]


def test_what_only_its_development_needs_is_not_installed(home: Home) -> None:
    home.init()
    assert not (home.extension / "tsconfig.json").exists()


def test_again_changes_nothing(home: Home) -> None:
    home.init()
    before = {path: path.stat().st_ino for path in home.extension.rglob("*")}
    assert "is connected already" in home.init().stdout
    assert {path: path.stat().st_ino for path in home.extension.rglob("*")} == before


def test_an_older_version_is_replaced_and_what_others_put_there_stays(home: Home) -> None:
    home.init()
    wanted = home.files()
    (home.extension / "index.ts").write_text("// old\n")
    (home.extension / "gone.ts").write_text("// of an older version\n")
    listed = json.loads((home.extension / "bridge.json").read_text())
    listed["files"].append("gone.ts")
    (home.extension / "bridge.json").write_text(json.dumps(listed))
    home.put("extensions/rewind/notes.md", "mine\n")
    assert home.doctor()["problems"]

    home.init()

    assert home.files() == {**wanted, "extensions/rewind/notes.md": b"mine\n"}


def test_removing_takes_everything_of_ours_and_nothing_else(home: Home) -> None:
    home.put("extensions/other.ts", "// another\n")
    home.put("settings.json", '{"theme": "dark"}')
    before = home.files()
    home.init()
    home.rewind("init", "--remove", home.agent)
    assert home.files() == before
    assert not home.extension.exists()
    assert "was not connected" in home.rewind("init", "--remove", home.agent).stdout


def test_removing_all_agents_needs_none_to_be_connected(home: Home) -> None:
    home.init()
    home.rewind("init", "--remove", "all")
    assert not home.extension.exists()


def test_a_folder_of_somebody_else_is_refused(home: Home) -> None:
    home.put("extensions/rewind/index.ts", "export default function () {}\n")
    before = home.files()
    ended = home.init("--yes", ok=False)
    assert ended.returncode == 1 and "not of Rewind" in ended.stderr
    assert home.files() == before


def test_a_link_in_its_place_is_refused(home: Home, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    home.extension.parent.mkdir()
    home.extension.symlink_to(tmp_path / "elsewhere")
    assert home.init("--yes", ok=False).returncode == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("rivals", [
    {"packages": ["npm:pi-rewind-hook", "npm:pi-tools"]},
    {"packages": [{"source": "npm:pi-rewind-hook@1.8.4", "extensions": []}, "npm:pi-tools"]},
    {"packages": ["git:github.com/nicobailon/pi-rewind-hook", "npm:pi-tools"]},
    {"packages": ["npm:pi-rewind", "npm:pi-tools"]},
    {"extensions": ["~/.pi/agent/extensions/rewind/index.ts", "./mine.ts"]},
    {"extensions": ["C:\\Users\\x\\.pi\\agent\\extensions\\rewind", "./mine.ts"]},
    {"hooks": ["/home/x/.pi/agent/hooks/rewind/index.ts"]},
])
def test_a_rival_in_the_settings_goes_only_on_the_users_word(pi: Home, rivals: Any) -> None:
    text = json.dumps({"theme": "dark", **rivals}, indent=4)
    pi.put("settings.json", text)

    refused = pi.init(ok=False)

    assert refused.returncode == 2 and "--yes" in refused.stderr
    assert pi.settings.read_text() == text and not pi.extension.exists()
    pi.init("--yes")
    left = json.loads(pi.settings.read_text())
    assert left.pop("theme") == "dark"
    assert left in ({"packages": ["npm:pi-tools"]}, {"extensions": ["./mine.ts"]}, {})
    assert (pi.dir / "settings.json.before-rewind").read_text() == text


def test_packages_of_other_names_are_no_rivals(pi: Home) -> None:
    text = json.dumps({"packages": ["npm:pi-rewinder", "npm:not-pi-rewind", "npm:rewind",
                                    {"source": 7}, None],
                       "extensions": ["./rewind.ts", "./my-extensions/rewinder"]})
    pi.put("settings.json", text)
    pi.init()
    assert pi.settings.read_text() == text


def test_a_rivals_folders_are_set_aside_whole(pi: Home) -> None:
    pi.put("extensions/rewind/index.ts", THEIRS)
    pi.put("extensions/rewind/package.json", '{"name": "pi-rewind-hook"}')
    pi.put("hooks/rewind/index.ts", THEIRS)
    assert pi.init(ok=False).returncode == 2
    assert (pi.extension / "index.ts").read_text() == THEIRS

    pi.init("--yes")

    assert (pi.dir / "before-rewind/extensions-rewind/index.ts").read_text() == THEIRS
    assert (pi.dir / "before-rewind/hooks-rewind/index.ts").read_text() == THEIRS
    assert json.loads((pi.extension / "package.json").read_text())["name"] == "coderewind-pi"
    assert pi.doctor()["connected"] == [str(pi.extension)]


def test_doctor_names_a_rival_that_came_later(pi: Home) -> None:
    pi.init()
    pi.put("settings.json", '{"packages": ["npm:pi-rewind-hook"]}')
    assert any("another checkpoint extension" in words for words in pi.doctor()["problems"])


def test_settings_that_are_no_json_are_left_alone(pi: Home) -> None:
    pi.put("settings.json", "{ theme: dark }")
    assert pi.init("--yes", ok=False).returncode == 1
    assert pi.settings.read_text() == "{ theme: dark }"


def test_the_folder_is_where_the_agent_looks(pi: Home, tmp_path: Path) -> None:
    elsewhere = tmp_path / "agent-dir"
    env = {"PATH": os.environ["PATH"], "HOME": str(pi.path), "PYTHONPATH": SRC,
           "PI_CODING_AGENT_DIR": str(elsewhere)}
    subprocess.run([sys.executable, "-m", "coderewind", "init", "--agents", "pi"],
                   cwd=pi.project, env=env, check=True, capture_output=True)
    assert (elsewhere / "extensions/rewind/index.ts").is_file()
    assert not pi.extension.exists()
