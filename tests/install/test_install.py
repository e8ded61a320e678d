"""install.sh for real: into a sealed home, from a checkout whose path has a space."""

import os
import shutil
from pathlib import Path

import pytest

from .conftest import User


def fake(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def tools(folder: Path, *left_out: str) -> str:
    """A PATH with the usual tools but some."""
    folder.mkdir(exist_ok=True)
    for place in ("/bin", "/usr/bin"):
        for entry in os.scandir(place):
            name = entry.name
            if not name.startswith(left_out) and not (folder / name).exists():
                (folder / name).symlink_to(entry.path)
    return str(folder)


@pytest.mark.slow
def test_install_use_upgrade_uninstall(user: User) -> None:
    project = user.home / "my project"
    project.mkdir()
    (project / "app.py").write_text("print('hello')\n")

    # Install from the project's folder and protect it, in one command.
    done = user.install("--yes", "--init", ".", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "Installed: rewind" in done.stdout
    assert "does not have ~/.local/bin yet" in done.stdout
    assert "my project is protected." in done.stdout
    assert done.stderr == ""
    for name in ("rewind", "coderewind"):
        assert (user.bin / name).readlink() == user.system / "bin" / name
    assert (user.home / ".rewind").stat().st_mode & 0o777 == 0o700

    # It works without the checkout.
    user.checkout.rename(user.checkout.with_name("elsewhere"))
    (project / "app.py").unlink()
    done = user.run([str(user.bin / "rewind"), "restore", "@", "--yes"], cwd=project)
    assert done.returncode == 0, done.stderr
    assert (project / "app.py").read_text() == "print('hello')\n"
    user.checkout.with_name("elsewhere").rename(user.checkout)

    # Again: an upgrade, also of files that changed without a new version.
    init = user.checkout / "src" / "coderewind" / "__init__.py"
    init.write_text(init.read_text().replace('__version__ = "', '__version__ = "99.'))
    done = user.install("--yes", PATH=f"{user.bin}:{user.env['PATH']}")
    assert done.returncode == 0, done.stderr
    assert "is now rewind 99." in done.stdout
    assert "has ~/.local/bin: type rewind" in done.stdout

    # Uninstall: only what it put there goes; --yes does not speak for checkpoints.
    mine = user.bin / "mine"
    mine.write_text("")
    done = user.install("--uninstall", "--yes")
    assert done.returncode == 0, done.stderr
    assert "They stay" in done.stdout
    left = user.everything()
    assert ".local/bin/mine" in left
    assert not any(path.startswith(".rewind/system") for path in left)
    assert not any("bin/rewind" in path or "bin/coderewind" in path for path in left)
    assert any(path.startswith(".rewind/storage/") for path in left)


@pytest.mark.slow
def test_uninstall_leaves_a_home_as_it_was(user: User) -> None:
    before = user.everything()

    user.install("--yes")
    user.install("--uninstall", "--yes")

    assert user.everything() == before


@pytest.mark.slow
def test_checkpoints_go_only_on_a_users_word(user: User) -> None:
    project = user.home / "project"
    project.mkdir()
    said = user.asked("--init", "project", answer="y\n")
    assert "Go on?" in said
    assert "project is protected." in said

    said = user.asked("--uninstall", "--yes", answer="n\n")
    assert "Delete them and your settings, for ever?" in said
    assert any(path.startswith(".rewind/storage/") for path in user.everything())

    said = user.asked("--uninstall", answer="y\n")
    assert "Deleted." in said
    assert user.everything() == {"project"}


@pytest.mark.slow
def test_agents_are_connected_and_let_go_again(user: User) -> None:
    settings = user.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"model": "opus"}')
    (user.home / ".factory").mkdir()

    done = user.install("--yes")
    assert f"claude connected: {settings} (tier exact)" in done.stdout
    assert "droid connected" in done.stdout
    assert str(user.system) in settings.read_text()
    assert (settings.parent / "commands" / "rewind-list.md").exists()

    # Again, by hand: an upgrade asks for the tier, and before it changes what is registered.
    said = user.asked(answer="y\nbalanced\ny\nn\n")
    assert "every tool that can write" in said, "the tiers are explained"
    assert f"{settings} has hooks of Rewind already. Change them?" in said
    assert "(tier balanced)" in said
    assert "UserPromptSubmit" not in settings.read_text()
    assert "UserPromptSubmit" in (user.home / ".factory" / "hooks.json").read_text(), "no is no"

    home = user.home / ".rewind"
    (home / "hook.log").write_text("a hook failed\n")
    (home / "sessions").mkdir(exist_ok=True)
    (home / "sessions" / "claude-x.json").write_text('{"prompt": "my words"}')
    done = user.install("--uninstall", "--yes")
    assert {path.name for path in home.iterdir()} == {"config.json"}
    assert settings.read_text() == '{"model": "opus"}'
    assert list(settings.parent.iterdir()) == [settings]
    assert list((user.home / ".factory").iterdir()) == []


@pytest.mark.slow
def test_a_failed_upgrade_leaves_the_program_working(user: User) -> None:
    user.install("--yes")
    (user.checkout / "pyproject.toml").write_text("not a project\n")

    done = user.install("--yes")

    assert done.returncode == 1
    assert "pip could not install Rewind" in done.stderr
    assert "nothing was installed or changed" in done.stderr
    assert user.run([str(user.bin / "rewind"), "--version"]).returncode == 0


@pytest.mark.slow
def test_a_broken_environment_is_made_anew(user: User) -> None:
    before = user.everything()
    user.install("--yes")
    (user.system / "bin" / "python").unlink()

    done = user.install("--yes")

    assert done.returncode == 0, done.stderr
    assert user.run([str(user.bin / "rewind"), "--version"]).returncode == 0
    assert not user.system.with_name("system.before").exists()
    user.install("--uninstall", "--yes")
    assert user.everything() == before, "what it made is known to it also afterwards"


@pytest.mark.slow
def test_settings_of_pip_do_not_lead_it_astray(user: User, tmp_path: Path) -> None:
    done = user.install("--yes", PIP_USER="1", PIP_TARGET=str(tmp_path / "t"), PYTHONPATH="/tmp")

    assert done.returncode == 0, done.stderr
    assert user.run([str(user.bin / "rewind"), "--version"]).returncode == 0
    assert not (tmp_path / "t").exists()


@pytest.mark.slow
def test_plain_pip_install_works(user: User) -> None:
    place = user.home / "an environment"
    user.run([user.env["PYTHON"], "-m", "venv", str(place)])

    done = user.run([str(place / "bin" / "pip"), "install", "-q", "."], cwd=user.checkout)

    assert done.returncode == 0, done.stderr
    assert user.run([str(place / "bin" / "rewind"), "demo"]).returncode == 0
    package = next(place.glob("lib/*/site-packages/coderewind"))
    for folder, source in (("extensions", user.checkout / "extensions"),
                           ("tiers", user.checkout / "src" / "coderewind" / "tiers")):
        assert _files(package / folder) == _files(source) != set()


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def refused(user: User, *words: str, **env: str) -> str:
    """What install.sh says when it does nothing."""
    before = user.everything()
    done = user.install(*words, cwd=None, **env)
    assert done.returncode in (1, 2), done.stdout
    assert user.everything() == before
    return done.stderr


def test_no_is_no(user: User) -> None:
    assert "nothing was changed" in user.asked(answer="n\n")
    assert user.everything() == set()


def test_without_a_terminal_it_wants_yes(user: User) -> None:
    assert "add --yes" in refused(user)


def test_another_rewind_is_never_replaced(user: User) -> None:
    user.bin.mkdir(parents=True)
    (user.bin / "rewind").write_text("another program\n")

    said = refused(user, "--yes")

    assert f"{user.bin}/rewind exists already and is another program" in said
    assert (user.bin / "rewind").read_text() == "another program\n"


def test_a_link_that_leads_elsewhere_is_never_replaced(user: User) -> None:
    user.bin.mkdir(parents=True)
    (user.bin / "coderewind").symlink_to("/somewhere/else")

    assert "leads to /somewhere/else" in refused(user, "--yes")


def test_a_place_for_the_links_that_cannot_be_made(user: User) -> None:
    (user.home / ".local").write_text("a file")

    assert "is no folder that you may write to; nothing was changed" in refused(user, "--yes")


def test_a_folder_that_is_not_ours_is_never_replaced(user: User) -> None:
    user.system.mkdir(parents=True)
    (user.system / "precious").write_text("")

    assert "is not what install.sh made" in refused(user, "--yes")
    assert "is not what install.sh made" in refused(user, "--uninstall", "--yes")


def test_git_is_missing(user: User, tmp_path: Path) -> None:
    path = tools(tmp_path / "tools", "git", "python")

    assert "git was not found; Rewind needs git 2.34" in refused(user, "--yes", PATH=path)


def test_git_is_too_old(user: User, tmp_path: Path) -> None:
    fake(tmp_path / "old", "git", "echo git version 2.25.1")

    path = f"{tmp_path / 'old'}:{user.env['PATH']}"
    assert "git 2.25.1 is too old" in refused(user, "--yes", PATH=path)


def test_python_is_missing(user: User, tmp_path: Path) -> None:
    path = tools(tmp_path / "tools", "python", "pypy")

    said = refused(user, "--yes", PATH=path, PYTHON="")

    assert "no Python was found; Rewind needs Python 3.11 or newer" in said
    assert "PYTHON=/path/to/python3.12 ./install.sh" in said


OLD = 'case "$3" in *platform*) echo 3.9.18 ;; *version_info*) exit 1 ;; esac'
NO_VENV = 'case "$3" in *platform*) echo 3.12.1 ;; *ensurepip*) exit 1 ;; esac'


def test_python_is_too_old(user: User, tmp_path: Path) -> None:
    path = tools(tmp_path / "tools", "python", "pypy")
    fake(tmp_path / "old", "python3", OLD)

    said = refused(user, "--yes", PATH=f"{tmp_path / 'old'}:{path}", PYTHON="")

    assert "Rewind needs Python 3.11 or newer" in said
    assert "is Python 3.9.18" in said


def test_python_has_no_venv(user: User, tmp_path: Path) -> None:
    path = tools(tmp_path / "tools", "python", "pypy")
    fake(tmp_path / "bare", "python3", NO_VENV)

    said = refused(user, "--yes", PATH=f"{tmp_path / 'bare'}:{path}", PYTHON="")

    assert "has no venv module" in said
    assert "apt install python3-venv" in said


@pytest.mark.parametrize(
    "words", [["--nonsense"], ["--init"], ["--uninstall", "--init", "."]], ids=" ".join
)
def test_typed_wrongly(user: User, words: list[str]) -> None:
    assert user.install(*words).returncode == 2


def test_a_folder_to_protect_that_is_not_there(user: User) -> None:
    assert "there is no folder nowhere" in refused(user, "--yes", "--init", "nowhere")


def test_nothing_to_uninstall(user: User) -> None:
    done = user.install("--uninstall", "--yes")

    assert done.returncode == 0
    assert "nothing to remove" in done.stdout


def test_it_is_plain_sh(user: User) -> None:
    dash = shutil.which("dash")
    if dash is None:
        pytest.skip("there is no dash here")

    assert user.run([dash, "-n", str(user.checkout / "install.sh")]).returncode == 0


@pytest.mark.slow
def test_what_the_mcp_server_needs_is_installed_on_request_and_kept(user: User) -> None:
    assert user.install("--yes").returncode == 0
    rewind = str(user.bin / "rewind")
    done = user.run([rewind, "mcp"])
    assert done.returncode == 1
    assert done.stderr == ("rewind: the MCP server needs a package that is not installed\n"
                           "  ./install.sh --mcp installs it, or pip install 'coderewind[mcp]'\n")

    for words in (["--yes", "--mcp"], ["--yes"]):
        assert user.install(*words).returncode == 0
        done = user.run([rewind, "mcp"])  # nobody there: it ends at once
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
