"""`fleet devices notify`: lets an idle device play an audio file."""

import secrets
from typing import Annotated

import typer

from fleet.adapters.files.watched_file import WatchedFile
from fleet.adapters.redis.devices.devices import DeviceRecord, Devices
from fleet.ground import runtime
from fleet.ground.errors import ConfigError, Unavailable
from fleet.ground.settings import Settings
from fleet.ground.terminal import visible
from fleet.operations.connect import Mac, open_publisher, open_store, operation, read_mac
from fleet.operations.json_output import AsJson, print_result
from fleet.wire import dialects
from fleet.wire import notify as codec
from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import down_topic


@operation
async def notify(
    settings: Settings,
    mac: Mac,
    url: Annotated[str, typer.Argument(help="http or https address of an Ogg file with one mono Opus stream.")],
    subtitle: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<str>",
            help="MILLISECONDS:TEXT, text to show from this position on, such as '1800:Saved.'; repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Let an idle device with firmware 2.5 or later play an audio file. The device sends no confirmation.

    Exit code 1: nothing was sent, because the device is offline, in a conversation, or has older firmware.
    """
    name = read_mac(mac)
    message = _message(url, subtitle or [])
    async with open_store(settings) as store:
        obstacle = _obstacle(await Devices(store).read(name))
    if obstacle:
        typer.echo(f"{name} {obstacle}", err=True)
        return runtime.EXIT_FAILED
    await _publish(settings, name, message)
    print_result("devices", [{"mac": name, "sent": True}], f"{name} was sent the notification", as_json=as_json)
    return 0


def _message(url: str, subtitles: list[str]) -> bytes:
    if not codec.is_playable(url):
        raise ConfigError(f"{url} is not an http or https address")
    read = [codec.read_subtitle(one) for one in subtitles]
    if None in read:
        raise ConfigError("a subtitle must have the form MILLISECONDS:TEXT")
    message = codec.write(url, [one for one in read if one])
    if message is None:
        raise ConfigError(f"the message is longer than {codec.LARGEST} bytes")
    return message


def _obstacle(device: DeviceRecord) -> str:
    """Return why a device would not play a notification; empty if it would."""
    if not device.online:
        return "is not connected"
    if not dialects.find(device.dialect).capabilities.notifications or not codec.is_known(device.firmware):
        return f"has firmware {visible(device.firmware) or 'of unknown version'}; notifications need 2.5"
    return "is in a conversation and would ignore it" if device.session else ""


async def _publish(settings: Settings, mac: str, message: bytes) -> None:
    name = f"fleet-notify-{secrets.token_hex(4)}"
    credentials = _keys(settings).issue("service", name)
    async with open_publisher(settings, credentials) as publisher:
        if not publisher.publish(down_topic(mac), message):
            raise Unavailable("the broker does not accept the message")


def _keys(settings: Settings) -> CredentialKeys:
    if settings.keys is not None:
        return CredentialKeys(settings.keys.get_secret_value())
    return CredentialKeys(WatchedFile(settings.keys_file or settings.data_dir / "keys").read())
