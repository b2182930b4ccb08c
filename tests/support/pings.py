"""Asking, through a device's own messages, whether anybody serves its shard."""

import asyncio

from tests.integration.worker.scripted import Device


async def ping(device: Device, tag: str, seconds: float = 240.0) -> float:
    """Talk of a session that nobody knows, and return when it is answered with its goodbye, on the loop's clock."""
    await device.say({"type": "listen", "state": "start", "mode": "auto", "session_id": tag})
    async with asyncio.timeout(seconds):
        while True:
            heard = await device.hear_type("goodbye")
            if heard["session_id"] == tag:
                return asyncio.get_running_loop().time()


async def ping_all(devices: list[Device], tag: str, seconds: float = 240.0) -> list[float]:
    """Return for each device how many seconds its answer took."""
    begun = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        answers = [group.create_task(ping(device, tag, seconds)) for device in devices]
    return [answer.result() - begun for answer in answers]


async def ping_until_answered(device: Device, seconds: float = 240.0) -> None:
    """Ask again and again: a broker that began anew loses what comes before its readers are back."""
    async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
        asking = group.create_task(_ask(device))
        while not (await device.hear_type("goodbye"))["session_id"].startswith("attempt"):
            pass
        asking.cancel()


async def _ask(device: Device) -> None:
    for number in range(1000):
        await device.say({"type": "listen", "state": "start", "mode": "auto", "session_id": f"attempt {number}"})
        await asyncio.sleep(0.3)
