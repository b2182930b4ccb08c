"""Tasks that begin at once (docs/adr/0030-work-that-begins-at-once.md)."""

import asyncio
import sys
import types
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import copy_context
from typing import Any, cast

_GENERATORS = sys.version_info < (3, 12)
"""Whether tasks run generators, too; only coroutines from Python 3.12 on. A generator is one frame less."""


def start_now(group: asyncio.TaskGroup, what: str, work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
    """Create a task in `group` and run it at once until it waits for the first time.

    An ordinary task begins in the next iteration of the event loop, which costs more than the task. In Python 3.12 this
    is an eager task.

    Args:
        group: As for `TaskGroup.create_task`.
        what: Names the task.
        work: A coroutine that has not begun.

    Raises:
        RuntimeError: The group is closed; the work was not begun.
    """
    context = copy_context()
    begun = _Begun(work)
    rest: Any = begun.rest() if _GENERATORS else _awaiting(begun.rest())
    rest.send(None)
    try:
        task = group.create_task(rest, name=what, context=context)
    except RuntimeError:
        rest.close()
        raise
    # The functions with which the documentation of asyncio lets others implement tasks ("Extending").
    loop = asyncio.get_running_loop()
    outer = asyncio.current_task(loop)
    if outer is not None:
        _leave_task(loop, outer)
    _enter_task(loop, task)
    try:
        context.run(begun.begin)
    finally:
        _leave_task(loop, task)
        if outer is not None:
            _enter_task(loop, outer)
    return task


async def _awaiting(rest: Awaitable[object]) -> object:
    return await rest


class _Begun:
    """A coroutine whose first step runs outside its task, and the rest inside."""

    __slots__ = ("_awaited", "_ended", "_failure", "_result", "_work")

    def __init__(self, work: Coroutine[Any, Any, object]) -> None:
        self._work = work
        self._awaited: Any = None
        self._ended = False
        self._result: object = None
        self._failure: BaseException | None = None

    def begin(self) -> None:
        try:
            self._awaited = awaited = self._work.send(None)
        except StopIteration as end:
            self._ended, self._result = True, end.value
        except BaseException as failure:  # noqa: BLE001 - the task raises it
            self._failure = failure
        else:
            if awaited is not None:
                # The task does not wait for it yet, and others may begin to.
                awaited._asyncio_future_blocking = False  # noqa: SLF001 - as in `rest`

    @types.coroutine
    def rest(self) -> Generator[Any, Any, object]:
        try:
            yield  # the task resumes here
        except BaseException as interruption:
            if self._ended or self._failure:
                raise
            if not self._cancel_awaited(interruption):
                self._step(self._work.throw, interruption)
        if self._failure:
            raise self._failure
        if self._awaited is not None and not self._ended:
            # With this mark a future shows the task that yields it that it is awaited and not only yielded.
            self._awaited._asyncio_future_blocking = True  # noqa: SLF001 - part of asyncio's protocol of futures
        while not self._ended:
            try:
                yield self._awaited
            except BaseException as interruption:  # noqa: BLE001 - the work handles it
                self._step(self._work.throw, interruption)
            else:
                # What it waited for has come: from here the interpreter passes on every step by itself.
                return (yield from cast("Generator[Any, Any, object]", self._work))
        return self._result

    def _cancel_awaited(self, interruption: BaseException) -> bool:
        """Cancel what the work waits for, as `Task.cancel` does; return whether it will pass this on to the work."""
        cancelled = isinstance(interruption, asyncio.CancelledError) and self._awaited is not None
        return cancelled and bool(self._awaited.cancel(*interruption.args))

    def _step(self, step: Callable[[Any], Any], value: object) -> None:
        try:
            self._awaited = step(value)
        except StopIteration as end:
            self._ended, self._result = True, end.value
