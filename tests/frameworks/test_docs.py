"""The examples of docs/frameworks.md, as they stand there, with scripted models."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents.fake_model import FakeModel, Json, call, text
from agents.install import program
from corpus.box import Box
from sealed import opened, sealed_box

from .driver import Step
from .with_google_adk import GoogleADK
from .with_langchain import LangChain
from .with_pydantic_ai import PydanticAI

PAGE = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text("utf-8")
STEPS: list[Step] = [[("checkpoint", {"goal": "g"})], [("read", {"path": "app.py"})],
                     [("rewind", {"report": "FOUND"})], "done"]


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Iterator[Box]:
    with sealed_box() as made:
        made.write("app.py", "print('CONTENT')\n")
        monkeypatch.chdir(made.project)
        yield made


def example(title: str) -> str:
    section = re.search(rf"^## {title}\n.*?^```python\n(.*?)^```$", PAGE, re.M | re.S)
    assert section
    return section[1]


def check(box: Box, before: str, after: str) -> None:
    """The exploration was sent, then its report instead; the folder has its checkpoints."""
    assert "CONTENT" in before
    assert "CONTENT" not in after
    assert after.count("FOUND") == 1
    kinds = [cp.kind for cp in opened(box).timeline().checkpoints]
    assert {"prompt", "save"} <= set(kinds)


@pytest.mark.parametrize(
    ("title", "make"),
    [("pydantic-ai", PydanticAI), ("LangChain", LangChain), ("Google ADK", GoogleADK)],
    ids=["pydantic-ai", "langchain", "google-adk"],
)
def test_the_example_runs(
    title: str, make: type[PydanticAI | LangChain | GoogleADK], box: Box
) -> None:
    driver = make()
    driver.steps = list(STEPS)

    exec(compile(example(title), "docs/frameworks.md", "exec"),
         {"__name__": "example", "model": driver.model})

    check(box, driver.requests[-2].text, driver.requests[-1].text)


def test_the_example_of_the_openai_agents_sdk_runs(box: Box) -> None:
    folder = Path(__file__).parent
    code = ("from openai_child import Scripted\nmodel = Scripted()\n"
            f"model.steps = {STEPS!r}\n" + example("OpenAI Agents SDK"))

    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": f"{folder}:{folder.parents[1] / 'src'}",
             "OPENAI_AGENTS_DISABLE_TRACING": "1"})

    assert ended.returncode == 0, ended.stderr
    rows = [row for row in ended.stdout.splitlines() if row.startswith('{"request"')]
    check(box, rows[-2], rows[-1])


class Scripted(FakeModel):
    def __init__(self) -> None:
        super().__init__()
        self.heard_of: list[str] = []

    def answer(self, body: Json) -> list[Json]:
        if not body.get("tools"):
            return super().answer(body)
        self.heard_of.append(json.dumps(body["messages"]))
        folder = os.getcwd()
        return [[call("mcp__rewind__checkpoint", goal="g")],
                [call("Read", file_path=f"{folder}/app.py")],
                [call("mcp__rewind__rewind", report="FOUND")],
                [text("done")]][len(self.heard_of) - 1]


@pytest.mark.agent
def test_the_example_of_the_claude_agent_sdk_runs(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Scripted()
    folder = Path(os.environ["HOME"]) / "bin"
    folder.mkdir()
    (folder / "claude").symlink_to(program("claude"))
    for name, value in {
        "PATH": f"{folder}:{os.environ['PATH']}", "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "dummy", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1", "ENABLE_TOOL_SEARCH": "false", "NO_PROXY": "127.0.0.1",
        "TMPDIR": os.environ["HOME"],
    }.items():
        monkeypatch.setenv(name, value)

    # the SDK prefers a Claude Code of its own, if its package has one
    code = example("Claude Agent SDK").replace(
        "ClaudeAgentOptions(", f"ClaudeAgentOptions(cli_path={shutil.which('claude')!r}, ")
    exec(compile(code, "docs/frameworks.md", "exec"), {"__name__": "example"})
    model.close()

    check(box, model.heard_of[-2], model.heard_of[-1])
