"""What only the garbage collector can free: objects in circles of references."""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_garbage() -> Iterator[None]:
    """Fail if the block leaves objects of the product that only the garbage collector can free.

    The collector rests during the block. What is still in use at the end of the block does not count.
    """
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect()
        found = Counter(map(_name, gc.garbage))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    ours = {name: count for name, count in found.items() if name.startswith("fleet.")}
    assert not ours, f"only the garbage collector frees {ours}"


def _name(one: object) -> str:
    """Return the class of an object with its module; of a function or coroutine its own name."""
    kind = type(one)
    if kind.__module__ != "builtins":
        return f"{kind.__module__}.{kind.__qualname__}"
    frame = getattr(one, "cr_frame", None) or getattr(one, "ag_frame", None) or getattr(one, "gi_frame", None)
    module = frame.f_globals.get("__name__") if frame else getattr(one, "__module__", "")
    return f"{module}.{getattr(one, '__qualname__', kind.__qualname__)}"
