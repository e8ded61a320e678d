"""The documentation says what the code does: generated parts are current, nothing is left out."""

import re
from pathlib import Path

import click
import pytest

from coderewind import __version__
from coderewind.bridge.bridge import PROTOCOL
from coderewind.cli.top import COMMANDS, rewind
from coderewind.engine import settings
from coderewind.model import coverage, records
from scripts import pages, shapes
from scripts.sealed import ROOT

DOCS = ROOT / "docs"
MARKDOWN = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
FORMAT = (DOCS / "format.md").read_text("utf-8")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", pages.pages(), ids=relative)
def test_generated_parts_are_current(page: Path) -> None:
    text = page.read_text("utf-8")

    assert pages.renewed(text) == text, "python -m scripts.pages --write renews it"


def test_the_published_schema_is_current() -> None:
    assert pages.SCHEMA.read_text("utf-8") == pages.schema()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    text = (DOCS / "commands.md").read_text("utf-8")

    section = re.search(rf"^## rewind {re.escape(command)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert section, f"docs/commands.md has no section for rewind {command}"
    assert f"help {command}" in pages.parts(section[1])
    prose = section[1].partition("<!-- generated")[0]
    assert len(prose.split()) >= 5, "a sentence that --help does not say"


def prints_json(command: str) -> bool:
    made = rewind.get_command(click.Context(rewind), command)
    return made is not None and any(option.name == "as_json" for option in made.params)


@pytest.mark.parametrize("command", [name for name in COMMANDS if prints_json(name)])
def test_every_json_document_has_an_example(command: str) -> None:
    shown = {part.removeprefix("json ").split()[0] for part in pages.parts(FORMAT)}

    assert command in shown, f"docs/format.md shows no document of rewind {command} --json"


@pytest.mark.parametrize("scene", shapes.SCENES)
def test_every_json_key_is_explained(scene: str) -> None:
    explained = set(re.findall(r"`([^`\n]+)`", FORMAT)) | set(settings.KEYS)
    document = shapes.documents()[scene]

    found = shapes.keys(document)
    assert found
    assert found - explained - {"error", "message"} == set()


@pytest.mark.parametrize(
    ("module", "page"),
    [(coverage, "format.md"), (coverage, "limitations.md"), (records, "format.md")],
    ids=["reasons", "reasons explained", "operations"],
)
def test_every_word_of_a_format_is_documented(module: object, page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    words = {value for name, value in vars(module).items()
             if name.isupper() and not name.startswith("_") and isinstance(value, str)}

    assert words
    assert {word for word in words if f"`{word}`" not in text} == set()


def test_the_record_of_an_anchor_is_documented() -> None:
    assert {name for name in records.Anchor.__slots__ if f"`{name}`" not in FORMAT} == set()


def test_the_changelog_knows_this_version() -> None:
    from coderewind import __version__

    assert re.search(rf"^## {re.escape(__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.M)


def _anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.M):
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", MARKDOWN, ids=relative)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)

    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        leads_to = (page.parent / path).resolve() if path else page
        if not leads_to.exists() or (
            anchor and anchor not in _anchors(leads_to.read_text("utf-8"))
        ):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=relative)
def test_every_page_can_be_reached(page: Path) -> None:
    """From the README, by one link from page to page after the other."""
    reached: set[Path] = set()
    queue = [ROOT / "README.md"]
    while queue:
        here = queue.pop()
        if here in reached or here.suffix != ".md" or not here.exists():
            continue
        reached.add(here)
        links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", here.read_text("utf-8"))
        targets = [(here.parent / link).resolve() for link in links if "://" not in link]
        queue += [path / "README.md" if path.is_dir() else path for path in targets]

    assert page in reached


def examples(page: str) -> list[str]:
    """The Python of a page, in its order."""
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.M | re.S)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one file, in which the examples run."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").write_text("print('hello')\n")
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REWIND_HOME", str(tmp_path / "rewind-home"))
    return project


def test_the_python_example_runs(project: Path) -> None:
    exec(compile(examples("python.md")[0], "docs/python.md", "exec"), {"__name__": "example"})

    assert (project / "app.py").read_text() == "import jwt\n"


@pytest.mark.usefixtures("project")
def test_the_readmes_agent_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = examples("../README.md")

    exec(compile(example, "README.md", "exec"), {"__name__": "example"})

    assert capsys.readouterr().out.split("\n")[:4] == ["1", "3", "5", "4"]
    assert len(example.rstrip().splitlines()) <= 20


@pytest.mark.usefixtures("project")
def test_the_examples_of_context_rewind_run() -> None:
    page: dict[str, object] = {"__name__": "example"}
    for example in examples("context.md"):
        exec(compile(example, "docs/context.md", "exec"), page)

    assert [len(request) for request in page["sent"]] == [1, 3, 5, 4]  # type: ignore[attr-defined]


def test_the_bridges_protocol_is_documented() -> None:
    extension = ROOT / "extensions" / "pi"
    index = (extension / "index.ts").read_text("utf-8")
    host = (extension / "host.ts").read_text("utf-8")
    served = index.partition("const SERVED")[2].partition("\n  };")[0]
    methods = set(re.findall(r'^ {4}"?([\w.]+)"?: \(', served, re.M))
    events = set(re.findall(r"^ {2}(\w+): \{", host, re.M))
    fields = {word.rpartition(".")[2] for words in re.findall(r"fields: \[([^\]]*)\]", host)
              for word in re.findall(r'"([^"]+)"', words)}
    section = re.search(r"^## The bridge\n(.*?)(?=^## )", FORMAT, re.M | re.S)
    assert section and {"ui.select", "alive"} < methods and {"context", "turn_end"} < events
    said = set(re.findall(r"`([^`\n]+)`", section[1]))

    assert (methods | events | fields) - said == set()
    assert f"**Protocol {PROTOCOL}.**" in section[1]
    assert f"const PROTOCOL = {PROTOCOL};" in index
    assert f'const VERSION = "{__version__}";' in index
