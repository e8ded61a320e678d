"""Restore and undo, for agents whose user allowed it: a plan first, then the user's word.

Without a plan's token nothing is done but planning. With it, a client that can ask its user must;
the token works once, and only while the files still are as planned.
"""

# No postponed annotations: the SDK reads those of functions that are defined inside another.
from typing import Annotated, Any

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel, Field

from coderewind.cli.app import plural
from coderewind.cli.ending import printable
from coderewind.engine.engine import Engine
from coderewind.engine.moving import Outcome, next_undo
from coderewind.errors import RewindError
from coderewind.mcp_server.desk import Desk, Offer
from coderewind.mcp_server.tools import Name, Paths, brief, clean
from coderewind.model.paths import to_text
from coderewind.model.records import Checkpoint

_SHOWN = 12
_MOST = 200
Token = Annotated[str, Field(
    max_length=100, description="The token of the plan that was shown; nothing plans only")]


class Consent(BaseModel):
    """What the user is asked."""

    go_on: bool = Field(title="Do it", description="The state before is kept as a checkpoint")


NOT_ASKED = Consent(go_on=True)


def restoring_tools(desk: Desk) -> list[Any]:
    """The two tools."""

    def ask_restore(context: Context[Any, Any], plan: str) -> Elicit[Consent] | Consent:
        return _ask(desk, context, "restore_checkpoint", plan)

    def ask_undo(context: Context[Any, Any], plan: str) -> Elicit[Consent] | Consent:
        return _ask(desk, context, "undo", plan)

    def restore_checkpoint(
        answer: Annotated[ElicitationResult[Consent], Resolve(ask_restore)],
        checkpoint: Name,
        paths: Paths = [],  # noqa: B006 - never changed; a list, so that the schema says so
        plan: Token = "",
    ) -> dict[str, Any]:
        """Put files back as a checkpoint holds them; the conversation stays as it is.

        First call: nothing is changed, the answer is the plan and its token. Read it, then call
        again with the token to have it done. The state before is kept as a checkpoint.
        """
        with desk.engine_that_may_restore() as engine:
            target = engine.resolve(str(checkpoint))
            scope = desk.scope(engine, paths)
            if not plan:
                return _planned(desk, engine, "restore_checkpoint", target, scope)
            offer = _accepted(desk, engine, plan, "restore_checkpoint", answer)
            if offer is None:
                return _DECLINED
            if (offer.checkpoint.id, offer.paths) != (target.id, scope):
                raise RewindError("this plan is for another checkpoint or other paths")
            return _done(engine.restore(offer.checkpoint, paths=offer.paths))

    def undo(
        answer: Annotated[ElicitationResult[Consent], Resolve(ask_undo)],
        plan: Token = "",
    ) -> dict[str, Any]:
        """Step the files back to the newest earlier state that differs; the conversation stays.

        First call: nothing is changed, the answer is the plan and its token. Read it, then call
        again with the token to have it done. What is undone is kept as a checkpoint.
        """
        with desk.engine_that_may_restore() as engine:
            target, _ = next_undo(engine)
            if not plan:
                return _planned(desk, engine, "undo", target, ())
            offer = _accepted(desk, engine, plan, "undo", answer)
            if offer is None:
                return _DECLINED
            if offer.checkpoint.id != target.id:
                raise _CHANGED
            return _done(engine.undo())

    return [restore_checkpoint, undo]


_DECLINED: dict[str, Any] = {"done": False, "why": "the user did not agree; nothing was changed"}
_CHANGED = RewindError("the files have changed since the plan; nothing was changed",
                       hint="call again without a plan for a new one")


def _ask(
    desk: Desk, context: Context[Any, Any], verb: str, token: str
) -> Elicit[Consent] | Consent:
    """The question for the user, where the client can put it and there is a plan to agree to."""
    can = context.client_capabilities.elicitation if context.client_capabilities else None
    if not token or can is None or (can.form is None and can.url is not None):
        return NOT_ASKED
    return Elicit(_question(desk.offered(token, verb)), Consent)


def _question(offer: Offer) -> str:
    """What would happen, in lines for a person; names come from the folder, so made printable."""
    steps = offer.plan.steps
    lines = [f"The agent wants to {'undo' if offer.verb == 'undo' else 'restore files'}, back to "
             f"checkpoint #{offer.checkpoint.number}: {plural(len(steps), 'change')}."]
    lines += [f"  {step.word} {printable(to_text(step.path))}" for step in steps[:_SHOWN]]
    if len(steps) > _SHOWN:
        lines.append(f"  … and {len(steps) - _SHOWN} more")
    return "\n".join(lines)


def _planned(
    desk: Desk, engine: Engine, verb: str, target: Checkpoint, scope: tuple[bytes, ...]
) -> dict[str, Any]:
    plan = engine.plan(target, paths=scope)
    shown = plan.as_json()
    for key in ("changes", "kept"):
        rows = shown[key]
        assert isinstance(rows, list)
        shown[key] = rows[:_MOST]
    data: dict[str, Any] = {"done": False, "checkpoint": brief(target), "plan": shown,
                            "changes": len(plan.steps)}
    if plan.is_empty or plan.blocked:
        data["why"] = ("something stands in the way" if plan.blocked
                       else "nothing to change: the files are already like that")
    else:
        data["token"] = desk.offer(Offer(verb, target, scope, plan))
        data["why"] = f"nothing was changed yet: call {verb} again with plan=token to have it done"
    return clean(data)


def _accepted(
    desk: Desk, engine: Engine, token: str, verb: str, answer: ElicitationResult[Consent]
) -> Offer | None:
    """The plan that may be carried out now; None when the user said no."""
    offer = desk.offered(token, verb)
    desk.withdraw(token)
    if not isinstance(answer, AcceptedElicitation) or not answer.data.go_on:
        return None
    if not offer.still_holds(engine.plan(offer.checkpoint, paths=offer.paths)):
        raise _CHANGED
    return offer


def _done(outcome: Outcome) -> dict[str, Any]:
    rescue = outcome.rescue.number if outcome.rescue else None
    return {"done": True, "changes": len(outcome.plan.steps), "stateBefore": rescue}
