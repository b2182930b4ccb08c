"""The address and the token of a device's camera."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fleet.wire import camera
from fleet.wire.identity import CredentialKeys, Minima
from tests.integration.worker.scene import PHOTO, asks, says, scene, text
from tests.support.certificates import Pki
from tests.support.mosquitto_server import MosquittoServer

LOOK = asks("camera_take_photo", '{"question":"what is it?"}')


def vision(request: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = request["params"]["capabilities"]["vision"]
    return found


async def test_a_device_is_told_where_to_upload_and_gets_a_fresh_token_before_each_photo(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys
) -> None:
    async with scene(redis_url, broker, keys, http_public="https://voice.example.org") as stage:
        session = await stage.prepare(PHOTO)
        stage.llm.script = [LOOK, says("A cat.")]
        await stage.utter(session, "what is it?")
        async with asyncio.timeout(240):
            given = vision(await stage.device.hear_request("initialize"))
            call = await stage.device.hear_request("tools/call")
        assert given["url"] == "https://voice.example.org/vision/explain"
        now = datetime.now(UTC).timestamp()
        assert camera.is_valid(keys, given["token"], stage.device.mac, now)
        keys.require(Minima(macs={stage.device.mac: 1}))
        assert camera.is_valid(keys, given["token"], stage.device.mac, now), "its password still counts"
        keys.require(Minima(macs={stage.device.mac: 2}))
        assert not camera.is_valid(keys, given["token"], stage.device.mac, now), "it was unbound, or has another owner"
        keys.require(Minima())
        await stage.device.answer(call, result=text("a cat"))


async def test_the_first_request_to_a_device_holds_its_camera_too(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys
) -> None:
    settings = {"public_host": "198.51.100.7", "http_port": 8123}
    async with scene(redis_url, broker, keys, **settings) as stage:
        given = vision(await stage.device.hear_request("initialize"))
        assert given["url"] == "http://198.51.100.7:8123/vision/explain"
        assert camera.is_valid(keys, given["token"], stage.device.mac, datetime.now(UTC).timestamp())


async def test_with_a_certificate_cameras_upload_over_https(
    redis_url: str, broker: MosquittoServer, keys: CredentialKeys, tmp_path: Path
) -> None:
    settings = {"public_host": "voice.example.org", "https_port": 8443, **Pki(tmp_path / "pki").settings}
    async with scene(redis_url, broker, keys, **settings) as stage:
        given = vision(await stage.device.hear_request("initialize"))
        assert given["url"] == "https://voice.example.org:8443/vision/explain"
