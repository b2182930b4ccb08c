"""Talks end with the operators of the file."""

from dataclasses import replace
from pathlib import Path

from fleet.adapters.files.operator_tokens import OperatorTokens, digest_of
from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.client.store import Store
from fleet.core.permissions import DEVICES_COMMAND, DEVICES_READ
from fleet.roles.control.access import Principal
from fleet.roles.control.leader.operator_talks import OperatorTalks
from fleet.roles.control.voice_devices import VoiceDevices
from tests.support.memory_store import memory_store

SCOPES = frozenset({DEVICES_COMMAND})


class Talkers:
    """Operators that talk."""

    def __init__(self, store: Store, path: Path) -> None:
        self.file, self._store, self._voice = OperatorTokens(path), store, VoiceDevices(store, b"key")
        self._talks = OperatorTalks(OperatorTokens(path), self._voice)

    async def talk(self, name: str) -> None:
        digest = digest_of(self.file.add(name, SCOPES))
        await self._voice.note(replace(_principal(name), digest=digest))
        await self._voice.own(self._voice.mac_of(_principal(name)))

    async def ended(self, *names: str) -> list[str]:
        """Let control look at the file; return whose talks that has ended."""
        before = [await self._generation(name) for name in names]
        await self._talks.look()
        return [name for name, was in zip(names, before, strict=True) if await self._generation(name) > was]

    async def _generation(self, name: str) -> int:
        return (await Admissions(self._store).read(self._voice.mac_of(_principal(name)))).generation


def _principal(name: str) -> Principal:
    return Principal("operator", name, 1, SCOPES)


async def test_talks_end_with_the_token_of_their_operator(tmp_path: Path) -> None:
    store, path = await memory_store(), tmp_path / "tokens"
    talkers = Talkers(store, path)
    names = ("ling", "mia", "noa", "ada")
    for name in names:
        await talkers.talk(name)
    assert await talkers.ended(*names) == []
    talkers.file.remove("ling")
    assert await talkers.ended(*names) == ["ling"]
    assert await talkers.ended(*names) == [], "once"
    talkers.file.remove("mia")
    talkers.file.add("mia", SCOPES)
    assert await talkers.ended(*names) == ["mia"], "another token of the same name"
    talkers.file.remove("noa")
    talkers.file.add("noa", frozenset({DEVICES_READ}))
    assert await talkers.ended(*names) == ["noa"]
    path.write_text("no tokens")
    assert await talkers.ended(*names) == ["ada"], "the file cannot be read, so all its tokens are refused"
    await store.close()
