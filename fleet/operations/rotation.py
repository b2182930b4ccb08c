"""Changing the key that passwords derive from, while devices are connected.

A device gets its password at bootstrap and asks bootstrap at its start only, so a key that is taken away too early
locks devices out until somebody switches them off and on. The order is therefore:

1. accept    a new key is added behind the old one: everything that checks passwords learns it, nobody is given it yet
2. sign      it moves to the front: whoever starts now gets a password under it; the old one is still good
3. reboot    devices that still have the old one are restarted, idle ones first, a few a second
4. retire    when none is left, the old key is removed

Which key a device has is told by its connection: anybody may ask bootstrap in its name, so a bootstrap with the new key
proves nothing. Only where the broker does not say who connects is a device judged by its bootstrap, and that is said.

Each step is visible in the keys' file, so that a rotation that was interrupted goes on where it was.
"""

import asyncio
import logging
import os
import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fleet.adapters.files.watched_file import WatchedFile, write_whole
from fleet.adapters.redis.devices.registry import DeviceRegistry, Entry
from fleet.ground.errors import ConfigError
from fleet.wire.dialect_xiaozhi import DIALECT
from fleet.wire.identity import CredentialKeys
from fleet.wire.restart import restart
from fleet.wire.topics import down_topic

log = logging.getLogger(__name__)

Step = Literal["accept", "sign", "reboot"]
Publish = Callable[[str, bytes], bool]

ASK_AGAIN_SECONDS = 300.0
"""After this time a device that has not reconnected is asked again; an idle device needs half a minute."""
LOOK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How a rotation goes; times in seconds.

    `settle` is how long everything that checks passwords has to read the file, `rate` the restarts a second, `patience`
    how long devices are waited for.
    """

    settle: float = 10.0
    rate: float = 5.0
    patience: float = 1800.0


class KeysFile:
    """The keys' file, as it is written by a rotation: `id key` a line, which the Mosquitto plugin can read, too.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> CredentialKeys:
        """Return the keys.

        Raises:
            ConfigError: The file cannot be read, or holds none.
        """
        return CredentialKeys(WatchedFile(self._path).read())

    def write(self, lines: Sequence[str]) -> None:
        """Write the keys; owner and mode of the file stay.

        Raises:
            ConfigError: It cannot be written, or these are no keys.
        """
        text = "".join(f"{line}\n" for line in lines)
        CredentialKeys(text)
        try:
            status = self._path.stat()
            write_whole(self._path, text, status.st_mode & 0o777)
            with suppress(PermissionError):
                os.chown(self._path, status.st_uid, status.st_gid)
        except OSError as error:
            raise ConfigError(f"{self._path}: {error.strerror}") from error


def next_step(ids: Sequence[str]) -> Step:
    """Return where a rotation goes on, by the ids in the file's order.

    Raises:
        ConfigError: There are more than two keys.
    """
    if len(ids) > 2:
        raise ConfigError(f"there are {len(ids)} keys; remove those that no device has any more")
    if len(ids) == 1:
        return "accept"
    return "sign" if _number(ids[1]) > _number(ids[0]) else "reboot"


class Rotation:
    """One rotation.

    Args:
        file: The keys.
        registry: Has the key of each device's password.
        publish: Sends a message to a device.
        report: Called with a sentence for each step.
        pace: How fast.
    """

    def __init__(
        self, file: KeysFile, registry: DeviceRegistry, publish: Publish, report: Callable[[str], None], pace: Pace
    ) -> None:
        self._file = file
        self._registry = registry
        self._publish = publish
        self._report = report
        self._pace = pace
        self._asked: dict[str, float] = {}

    async def run(self) -> list[Entry]:
        """Do what is left of it; return the devices for which the old key had to stay.

        Raises:
            ConfigError: The file cannot be used.
            Unavailable: Redis does not answer.
        """
        step = next_step(self._file.read().ids)
        if step == "accept":
            await self._accept()
        if step in ("accept", "sign"):
            await self._sign()
        left = await self._reboot()
        if not left:
            self.retire()
        return left

    def retire(self) -> None:
        """Remove all keys but the first."""
        newest, *others = self._file.read().as_file().splitlines()
        self._file.write([newest])
        if others:
            self._report(f"retired: {', '.join(line.split()[0] for line in others)}")

    async def _accept(self) -> None:
        lines = self._file.read().as_file().splitlines()
        name = f"k{max(_number(line.split()[0]) for line in lines) + 1}"
        self._file.write([*lines, f"{name} {secrets.token_urlsafe(32)}"])
        self._report(f"accepted: {name}, not given to anybody yet")
        await asyncio.sleep(self._pace.settle)

    async def _sign(self) -> None:
        old, new = self._file.read().as_file().splitlines()
        self._file.write([new, old])
        self._report(f"signs now: {new.split()[0]}; {old.split()[0]} is still good")
        await asyncio.sleep(self._pace.settle)

    async def _reboot(self) -> list[Entry]:
        """Restart whoever has an older password, until nobody has or the time is over; return who still has."""
        newest = self._file.read().ids[0]
        loop = asyncio.get_running_loop()
        deadline, told = loop.time() + self._pace.patience, -1
        self._report_unconfirmed(await self._registry.entries())
        while True:
            left = [entry for entry in await self._registry.entries() if key_of(entry) != newest]
            if len(left) != told:
                told = len(left)
                self._report(
                    f"{told} devices have an older password, {sum(one.device.online for one in left)} are online"
                )
            if not left or loop.time() >= deadline or not any(one.device.online for one in left):
                return left
            await self._restart(left, loop.time)
            await asyncio.sleep(LOOK_SECONDS)

    def _report_unconfirmed(self, entries: Sequence[Entry]) -> None:
        guessed = sum(entry.connected is None for entry in entries)
        if guessed:
            self._report(
                f"of {guessed} devices no broker has said with which key they connected; "
                "what they were given last at bootstrap counts, and anybody may ask that in their name"
            )

    async def _restart(self, entries: Sequence[Entry], clock: Callable[[], float]) -> None:
        for device in (entry.device for entry in entries):
            asked = self._asked.get(device.mac)
            waiting = asked is not None and clock() - asked < ASK_AGAIN_SECONDS
            # A conversation is not cut off; its device is asked once it has ended.
            if waiting or device.session or not device.online:
                continue
            self._asked[device.mac] = clock()
            self._publish(down_topic(device.mac), DIALECT.send(restart()))
            await asyncio.sleep(1 / self._pace.rate)


def key_of(entry: Entry) -> str:
    """Return the id of the key that a device needs: of its last connection, else of its last bootstrap."""
    return entry.connected.key_id if entry.connected else entry.key


def _number(key_id: str) -> int:
    found = re.search(r"(\d+)$", key_id)
    return int(found[1]) if found else 0
