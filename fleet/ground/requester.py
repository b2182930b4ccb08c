"""On whose behalf this task and its children work: engines that many share serve first who has used them least."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_requester: ContextVar[str] = ContextVar("requester", default="")


def requester() -> str:
    """Return the requester of this task's work, such as a device's MAC; empty if there is none."""
    return _requester.get()


@contextmanager
def working_for(name: str) -> Iterator[None]:
    """Work for somebody within the block, also in tasks that it starts."""
    token = _requester.set(name)
    try:
        yield
    finally:
        _requester.reset(token)
