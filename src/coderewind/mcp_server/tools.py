"""The tools that every agent gets: look, save, name. None of them changes a file or drops one."""

from __future__ import annotations

import time
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from pydantic import Field

from coderewind.cli import diff as diffs
from coderewind.cli import show as shows
from coderewind.cli.showing import describe
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.mcp_server.desk import Desk
from coderewind.model.paths import to_text
from coderewind.model.records import Anchor, Checkpoint

LONGEST = 60_000  # characters of a patch; more floods an agent's context
_MOST = 200  # entries of a list inside an answer

Name = Annotated[int | str, Field(
    description='A checkpoint: its number, label, "@" for the latest, "@-2", "10 minutes ago"')]
Paths = Annotated[list[str], Field(
    max_length=1000, description="Only these files and folders, relative to the folder's root")]
Words = Annotated[str, Field(max_length=500, description="A few words")]


class Tools:
    """Each public method is one tool; its docstring is what the agent is told."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def list_checkpoints(
        self, limit: Annotated[int, Field(ge=1, le=_MOST)] = 20
    ) -> dict[str, Any]:
        """List the checkpoints of this folder, newest first."""
        with self._desk.engine() as engine:
            timeline = engine.timeline()
            engine.standing(timeline, engine.current_snapshot())
            found = timeline.checkpoints
            rows = [brief(cp) for cp in found[:limit]]
            return clean({"checkpoints": rows, "older": len(found) - len(rows)})

    def show_checkpoint(self, checkpoint: Name) -> dict[str, Any]:
        """Show one checkpoint: when it was made, what changed, what it does not hold and why."""
        with self._desk.engine() as engine:
            return show(engine, checkpoint)

    def diff_checkpoints(
        self,
        since: Annotated[int | str, Field(description="The older checkpoint")] = "@",
        until: Annotated[int | str | None,
                         Field(description="The newer one; nothing means the files now")] = None,
        paths: Paths = [],  # noqa: B006 - never changed; a list, so that the schema says so
        stat: Annotated[bool, Field(description="Only how much changed in each file")] = False,
    ) -> str:
        """Show what differs between two checkpoints, or between one and the files now."""
        with self._desk.engine() as engine:
            scope = list(self._desk.scope(engine, paths))
            return patch(engine, since, until, scope, stat=stat)

    def save_checkpoint(
        self, context: Context[Any, Any], description: Words = ""
    ) -> dict[str, Any]:
        """Make a checkpoint of the folder as it is now, before something risky or when it works.

        Costs little: unchanged files are shared. When nothing changed and there is no description,
        the newest checkpoint is the answer.
        """
        with self._desk.engine(create=self._desk.may_protect()) as engine:
            words = " ".join(description.split())
            anchor = Anchor(agent=_client(context))
            saved = engine.save(label=words, anchor=anchor, reuse=not words)
            notable = [item for item in saved.coverage if item.reason != "ignored"]
            return clean({**brief(saved.checkpoint), "reused": saved.reused,
                          "notHeld": [item.as_json() for item in notable[:_MOST]]})

    def label_checkpoint(self, checkpoint: Name, label: Words) -> dict[str, Any]:
        """Name a checkpoint that has no name yet. Changing or removing a name is the user's."""
        words = " ".join(label.split())
        if not words:
            raise RewindError("a label needs words")
        with self._desk.engine() as engine:
            found = engine.resolve(str(checkpoint))
            if found.label:
                raise RewindError(f"checkpoint #{found.number} has a name already: {found.label}",
                                  hint="only the user can change it: rewind label")
            engine.label(found, words)
            found.label = words
            return clean(brief(found))


def brief(cp: Checkpoint) -> dict[str, Any]:
    """A checkpoint in as many words as a list needs."""
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(cp.time / 1000))
    facts = {"number": cp.number, "time": when, "kind": cp.kind, "what": describe(cp),
             "files": cp.files, "agent": cp.anchor.agent, "pinned": cp.pinned,
             "current": cp.current, "flags": list(cp.flags)}
    return {name: value for name, value in facts.items() if value or name == "files"}


def show(engine: Engine, name: int | str) -> dict[str, Any]:
    cp = engine.resolve(str(name))
    changes, coverage = engine.changes_of(cp), engine.coverage_of(cp)
    data = shows.document(engine, cp, changes[:_MOST], coverage[:_MOST])
    if len(changes) > _MOST or len(coverage) > _MOST:
        data["more"] = {"changes": len(changes), "coverage": len(coverage)}
    return clean(data)


def patch(
    engine: Engine, since: int | str, until: int | str | None, scope: list[bytes], *, stat: bool
) -> str:
    old, new = diffs.sides(engine, str(since), None if until is None else str(until))
    return cut(to_text(diffs.patch_of(engine, old, new, scope, stat=stat, patch=not stat)))


def cut(text: str) -> str:
    text = valid(text)
    if len(text) <= LONGEST:
        return text or "no differences"
    return (f"{text[:LONGEST]}\n… cut: {LONGEST} of {len(text)} characters; ask for stat, "
            "or name the paths that matter\n")


def clean(data: dict[str, Any]) -> dict[str, Any]:
    """An answer in which every text is one that JSON can say."""
    return {key: _clean(value) for key, value in data.items()}


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return valid(value)
    if isinstance(value, dict):
        return clean(value)
    return [_clean(item) for item in value] if isinstance(value, list) else value


def valid(text: str) -> str:
    """Text as valid Unicode: the name of a file may be any bytes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _client(context: Context[Any, Any]) -> str:
    """The name that the client gives itself, fit for a list."""
    params = context.session.client_params
    name = params.client_info.name if params else ""
    return "".join(c for c in name if c.isprintable())[:40] or "mcp"
