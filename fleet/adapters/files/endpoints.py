"""A running `fleet up`: its process, addresses and settings, for commands on the same machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, JsonValue, ValidationError

from fleet.adapters.files.watched_file import write_whole

_NAME = "running.json"


class EndpointsFile(BaseModel):
    """Addresses and settings with their passwords; the file that holds them is readable by its owner only."""

    redis_url: str
    mqtt_url: str
    pid: int = 0
    """0: not known."""
    settings: dict[str, JsonValue] | None = None
    """All settings of a `fleet up`, as `fleet.ground.settings.stored` has them; None of another role."""
    control_url: str = ""
    """Of control; its token is in a file of its own (`fleet.adapters.files.local_token`)."""
    control_authority: Path | None = None
    """The authority of its certificate, if that is a private one."""


@contextmanager
def publish(data_dir: Path, file: EndpointsFile) -> Iterator[None]:
    """Write the file for the duration of the block, with the id of this process.

    Raises:
        OSError: The file cannot be written.
    """
    path = data_dir / _NAME
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(path, file.model_copy(update={"pid": os.getpid()}).model_dump_json(), 0o600)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def find(data_dir: Path) -> EndpointsFile | None:
    """Return the file of the fleet that runs with this folder; None if none runs."""
    try:
        found = EndpointsFile.model_validate_json((data_dir / _NAME).read_bytes())
    except (OSError, ValidationError):
        return None
    return found if _runs(found.pid) else None


def _runs(pid: int) -> bool:
    if pid == 0:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # somebody else's process
    return True
