"""Every error openfield raises on purpose, in one tree.

Used everywhere; the command line turns each into one line and the exit status drawn here.

    OpenfieldError                   2   something a reader can mend; never shown with a traceback
    ├── UnknownName                      a domain, agent, novelty, metric or key that does not exist
    ├── InvalidInput                     a file, setting or value that cannot be used
    ├── MissingExtra                     an optional part that is not installed
    ├── JournalError                     a run file that cannot be read or written
    │   ├── NotARun                      some other file
    │   ├── DamagedRun                   a run file with a broken part
    │   ├── RunBusy                      another process holds what we need
    │   └── DiskFull                75   no room left; the run resumes when there is some
    ├── AgentFault                       a fault of the agent; carries the outcome it leads to
    │   ├── AgentCrashed                 agent_error
    │   ├── AgentTimeout                 agent_timeout
    │   ├── AgentProtocol                agent_protocol
    │   └── AgentGone                    agent_gone
    ├── WorldFault                       the world failed: world_error, never scored
    ├── ReplayMismatch                   a replayed turn differs from the recorded one
    │   └── AgentDiffers                 a re-driven agent answers otherwise than it did
    ├── NothingScored                1   every cell of a run failed
    ├── Incomplete                   1   something was made, but a part of it is missing
    └── Cancelled                  130   the user asked to stop
        └── AgentAway               75   what the agent needs does not answer; the run resumes when it does
"""

from __future__ import annotations

import difflib
import errno
import signal
from collections.abc import Iterable
from typing import Any

__all__ = [
    "AgentAway",
    "AgentCrashed",
    "AgentDiffers",
    "AgentFault",
    "AgentGone",
    "AgentProtocol",
    "AgentTimeout",
    "Cancelled",
    "DamagedRun",
    "DiskFull",
    "Incomplete",
    "InvalidInput",
    "JournalError",
    "MissingExtra",
    "NotARun",
    "NothingScored",
    "OpenfieldError",
    "ReplayMismatch",
    "RunBusy",
    "UnknownName",
    "WorldFault",
]

NO_HANDLES = (errno.EMFILE, errno.ENFILE)
"""Errors of the system when too many files are open."""
MORE_MEMORY = "Allow it more (ulimit -v, or the limit of its container), or read fewer files at once."
"""What to do when memory does not suffice."""
MAX_NOTE = 2_000
"""Characters of a text from an agent that are kept in a note."""
MAX_NAMES = 60
"""How many names a message lists."""


class OpenfieldError(Exception):
    """The root of the tree: a message written for its reader."""

    exit_status = 2


class UnknownName(OpenfieldError):
    """A name nothing is known by; the message suggests the nearest one and lists the rest."""

    def __init__(self, kind: str, name: str, known: Iterable[str], label: str = "Installed") -> None:
        names = sorted(known)
        near = find_near(name, names)
        hint = f" Did you mean '{near}'?" if near else ""
        listed = ", ".join(names[:MAX_NAMES]) + (f" and {len(names) - MAX_NAMES} more" if names[MAX_NAMES:] else "")
        super().__init__(f"Unknown {kind} '{name}'.{hint} {label}: {listed or 'none'}.")


def find_near(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the known name that is most like another, or the shortest that it begins; None if none is near.

    Args:
        name: The name.
        known: All known ones.
        likeness: How alike they must be, from 0 to 1.
    """
    names = list(known)
    begun = sorted((each for each in names if name and each.startswith(name)), key=len)
    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=likeness) + begun), None)


class InvalidInput(OpenfieldError):
    """A file, setting or value that cannot be used; the message names the place and what would be right."""


class MissingExtra(OpenfieldError):
    """An optional part of openfield is needed and not installed."""

    def __init__(self, extra: str, need: str) -> None:
        from openfield.installation import install_line

        super().__init__(f"{need} needs an optional part of openfield. Install it: {install_line(extra)}")


class JournalError(OpenfieldError):
    """A run file cannot be read or written."""


class NotARun(JournalError):
    """The file is not a run of openfield."""


class DamagedRun(JournalError):
    """The file is a run of openfield, and a part of it is broken."""


class RunBusy(JournalError):
    """Another process holds the run file or one of its cells."""


class DiskFull(JournalError):
    """There is no room for the record; nothing that was committed is lost."""

    exit_status = 75


class AgentFault(OpenfieldError):
    """The agent did something wrong; `outcome` is the outcome of its cell."""

    outcome = "agent_error"
    reply_note: Any = None
    """What the agent wants on record although it gave no reply, such as the tokens of a malformed answer."""


class AgentCrashed(AgentFault):
    """The agent raised an exception."""


class AgentTimeout(AgentFault):
    """The agent took longer than its limits allow."""

    outcome = "agent_timeout"


class AgentProtocol(AgentFault):
    """The agent answered something that is not an answer here."""

    outcome = "agent_protocol"


class AgentGone(AgentFault):
    """The agent went away before the trial was over."""

    outcome = "agent_gone"


class WorldFault(OpenfieldError):
    """The world failed; this is never scored as behaviour of the agent."""


class ReplayMismatch(OpenfieldError):
    """A replayed turn differs from the recorded one."""


class AgentDiffers(ReplayMismatch):
    """A re-driven agent answers otherwise than it did; its cell starts again."""


class NothingScored(OpenfieldError):
    """Every cell of a run failed; the record says how."""

    exit_status = 1


class Incomplete(OpenfieldError):
    """Something was made of what there is, but a part is missing."""

    exit_status = 1


class Cancelled(OpenfieldError):
    """The user asked to stop; the run can be resumed."""

    exit_status = 130


class AgentAway(Cancelled):
    """A service that an agent needs does not answer, such as the endpoint of a model; its cell can be resumed.

    Like `Cancelled`, only an agent whose class has `may_leave = True` may raise it.
    """

    exit_status = 75


def blame_agent(complaint: str, error: BaseException) -> AgentCrashed:
    """Return the fault of an agent that raised something.

    Ctrl-C is not the agent's fault, unless this process ignores it: then only the agent can have raised it.
    """
    if isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        raise error
    return AgentCrashed(f"{complaint} {describe_error(error)}")


def describe_error(error: BaseException) -> str:
    """Return the type and the text of an error that code of others raised: its text may be long, or raise itself."""
    try:
        text = str(error)
    except Exception as second:
        text = f"its text raised {type(second).__name__}"
    return f"{type(error).__name__}: {text[:MAX_NOTE]}{'...' if len(text) > MAX_NOTE else ''}"


def too_many_files() -> InvalidInput:
    """Return what to do when the system opens no further file for this process."""
    try:
        import resource

        limit = f"Only {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}"
    except ImportError:  # Windows
        limit = "Not enough"
    return InvalidInput(
        f"{limit} files may be open at once here, and more are needed. "
        "Allow more (ulimit -n 1024), or use fewer workers. All recorded turns are safe."
    )


def shorten(value: object) -> str:
    """Return a value that an agent gave, short enough for a message."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"what raises {type(error).__name__} when it is printed"
    return f"{text[:60]}{'...' if len(text) > 60 else ''} ({type(value).__name__})"
