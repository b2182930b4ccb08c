"""Rotates the key from which passwords derive, while devices are connected.

A device asks bootstrap for its password only when it starts. If a key is removed too early, devices with a password
under it are locked out until somebody switches them off and on. The steps are therefore:

1. accept    add a new key behind the old one: all processes accept passwords under it, none issues them yet
2. sign      move the new key to the front: devices that start get a password under it; the old key stays valid
3. reboot    restart the devices that still have the old key, when they are idle, a few per second
4. retire    remove the old key when no device has it

A device's connection proves which key the device has. A bootstrap with the new key proves nothing, because any client
can ask bootstrap for any MAC. If the broker does not report who connects, the rotation uses the last bootstrap and
says so.

The keys file shows which step comes next, so that an interrupted rotation continues there.
"""

import asyncio
import logging
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fleet.adapters.files.watched_file import WatchedFile, write_whole
from fleet.adapters.redis.devices.registry import DeviceRegistry, Entry
from fleet.ground.errors import ConfigError
from fleet.ground.terminal import plural
from fleet.wire.dialect_xiaozhi import DIALECT
from fleet.wire.identity import CredentialKeys
from fleet.wire.restart import restart
from fleet.wire.topics import down_topic

log = logging.getLogger(__name__)

Step = Literal["accept", "sign", "reboot"]
Publish = Callable[[str, bytes], bool]
Restart = Callable[[str], Awaitable[None]]

RETRY_SECONDS = 300.0
"""A device that has not reconnected within this time is asked again; an idle device needs half a minute."""
POLL_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of a rotation.

    Args:
        settle: Wait after each change of the file, in seconds; all processes that check passwords read it in that time.
        rate: Restarts per second.
        reconnect_limit: Longest wait for the devices to reconnect, in seconds.
    """

    settle: float = 10.0
    rate: float = 5.0
    reconnect_limit: float = 1800.0


class KeysFile:
    """The keys file: one `id key` per line, a format that the Mosquitto plugin reads too.

    Args:
        path: Of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> CredentialKeys:
        """Return the keys.

        Raises:
            ConfigError: The file cannot be read, or has no valid keys.
        """
        return CredentialKeys(WatchedFile(self._path).read())

    def write(self, lines: Sequence[str]) -> None:
        """Write the keys; owner and mode of the file stay the same.

        Raises:
            ConfigError: The file cannot be written, or the lines are not valid keys.
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
    """Return the step with which a rotation continues.

    Args:
        ids: Of the keys, in the order of the file.

    Raises:
        ConfigError: There are more than two keys.
    """
    if len(ids) > 2:
        raise ConfigError(f"there are {len(ids)} keys; remove the keys that no device needs")
    if len(ids) == 1:
        return "accept"
    return "sign" if _number(ids[1]) > _number(ids[0]) else "reboot"


class Rotation:
    """One rotation.

    Args:
        file: The keys file.
        registry: Knows the key of each device's password.
        publish: Sends a message to a device: topic, payload.
        report: Called with a line for each step.
        pace: Of the rotation.
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
        """When each device was asked to restart, by MAC, on the loop's clock."""

    async def run(self, restart: Restart | None = None) -> list[Entry]:
        """Do the remaining steps; return the devices that still need the old key.

        Args:
            restart: Moves the devices to a key, given its id; without it, this object asks them itself.

        Raises:
            ConfigError: The keys file cannot be used.
            Unavailable: Redis does not answer.
        """
        step = next_step(self._file.read().ids)
        if step == "accept":
            await self._accept()
        if step in ("accept", "sign"):
            await self._sign()
        if restart is None:
            remaining = await self._reboot()
        else:
            newest = self._file.read().ids[0]
            await restart(newest)
            remaining = _older(await self._registry.entries(), newest)
            self._report_older(remaining)
        if not remaining:
            self.retire()
        return remaining

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
        self._report(f"accepted: {name}, does not sign yet")
        await asyncio.sleep(self._pace.settle)

    async def _sign(self) -> None:
        old, new = self._file.read().as_file().splitlines()
        self._file.write([new, old])
        self._report(f"signs now: {new.split()[0]}; {old.split()[0]} stays valid")
        await asyncio.sleep(self._pace.settle)

    async def _reboot(self) -> list[Entry]:
        """Restart devices with an older password until none has one or the time is over; return those that have.

        All devices are read at the beginning and in the end; in between, only those that are left.
        """
        newest = self._file.read().ids[0]
        loop = asyncio.get_running_loop()
        deadline, reported = loop.time() + self._pace.reconnect_limit, -1
        entries = await self._registry.entries()
        self._report_unconfirmed(entries)
        remaining = _older(entries, newest)
        while True:
            if len(remaining) != reported:
                reported = len(remaining)
                self._report_older(remaining)
            if not any(entry.device.online for entry in remaining) or loop.time() >= deadline:
                return _older(await self._registry.entries(), newest)
            await self._restart(remaining, loop.time)
            await asyncio.sleep(POLL_SECONDS)
            remaining = _older(await self._registry.again(remaining), newest)

    def _report_older(self, remaining: Sequence[Entry]) -> None:
        online = sum(entry.device.online for entry in remaining)
        self._report(f"devices with an older password: {len(remaining)}, online: {online}")

    def _report_unconfirmed(self, entries: Sequence[Entry]) -> None:
        unconfirmed = sum(entry.connected is None for entry in entries)
        if unconfirmed:
            self._report(
                f"the broker has not reported the key of {plural(unconfirmed, 'device')}; that of the last bootstrap "
                "is used instead, although any client can ask bootstrap for any MAC"
            )

    async def _restart(self, entries: Sequence[Entry], clock: Callable[[], float]) -> None:
        for device in (entry.device for entry in entries):
            asked = self._asked.get(device.mac)
            restarting = asked is not None and clock() - asked < RETRY_SECONDS
            # Do not interrupt a conversation; a later round asks its device.
            if restarting or device.session or not device.online:
                continue
            self._asked[device.mac] = clock()
            self._publish(down_topic(device.mac), DIALECT.send(restart()))
            await asyncio.sleep(1 / self._pace.rate)


def _older(entries: Sequence[Entry], newest: str) -> list[Entry]:
    return [entry for entry in entries if key_of(entry) != newest]


def key_of(entry: Entry) -> str:
    """Return the id of the key of a device's password: of its last connection, else of its last bootstrap."""
    return entry.connected.key_id if entry.connected else entry.key


def _number(key_id: str) -> int:
    found = re.search(r"(\d+)$", key_id)
    return int(found[1]) if found else 0
