"""Rotated keys; tests/integration/redis/test_revocations.py has the rest."""

from pathlib import Path

import pytest

from fleet.adapters.redis.access.watch import LOOK_SECONDS, KeysWatch
from fleet.ground.tasks import running
from fleet.wire.identity import CredentialKeys
from tests.support.virtual_time import elapse

OLD, NEW = "k1:a-key-of-this-test-only", "k2:another-key-of-this-test-only"


async def test_keys_are_read_again_when_their_file_changes_and_a_bad_file_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, keys = tmp_path / "keys", CredentialKeys(OLD)
    path.write_text(OLD)
    caplog.set_level("INFO")
    async with running("keys", KeysWatch(path, keys).run):
        await elapse(LOOK_SECONDS * 2)
        assert caplog.messages == []
        path.write_text(f"{NEW},{OLD}")
        await elapse(LOOK_SECONDS * 1.5)
        assert list(keys.ids) == ["k2", "k1"] and caplog.messages == ["keys changed"]
        for text in ("no keys", "no keys at all"):
            path.write_text(text)
            await elapse(LOOK_SECONDS * 3)
        assert list(keys.ids) == ["k2", "k1"]
        assert set(caplog.messages[1:]) == {"keys stay as they were"} and len(caplog.messages) <= 3
        path.write_text(NEW)
        await elapse(LOOK_SECONDS * 1.5)
        assert list(keys.ids) == ["k2"]
