"""Context rewind: an agent goes back to a checkpoint of its own conversation and keeps a report.

    from coderewind.context import AgentSession, Gate, Reply

    session = AgentSession(model, gate=Gate(enabled=True))
    session.prompt("Find out where retries are configured")

`ContextRewind` with `Messages` is what an adapter for a host or a framework builds on. Nothing
here knows one of them, nor how files are captured.
"""

from coderewind.context.messages import Call as Call
from coderewind.context.messages import Messages as Messages
from coderewind.context.messages import Result as Result
from coderewind.context.rewinder import ContextRewind as ContextRewind
from coderewind.context.rewinder import Files as Files
from coderewind.context.session import AgentSession as AgentSession
from coderewind.context.session import Reply as Reply
from coderewind.context.tools import Gate as Gate
from coderewind.context.tools import Tool as Tool
from coderewind.context.tools import ToolError as ToolError
from coderewind.context.tree import SessionTree as SessionTree

__all__ = ["AgentSession", "Call", "ContextRewind", "Files", "Gate", "Messages", "Reply",
           "Result", "SessionTree", "Tool", "ToolError"]
