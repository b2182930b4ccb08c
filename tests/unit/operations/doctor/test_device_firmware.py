"""A device with old firmware: what is offered, and why it does not take it."""

from dataclasses import replace
from pathlib import Path

from fleet.adapters.redis.access.admissions import Admission
from fleet.adapters.redis.devices.view import DeviceView
from fleet.operations.doctor.device_firmware import examine_firmware
from fleet.operations.doctor.finding import Finding
from tests.support.api_server import write_image

NOW = 1_800_000_000
KNOWN = DeviceView("aa:bb:cc:dd:ee:ff", {}, {}, None, None, Admission(), False, {}, {}, 0, False)


def firmware(folder: Path | None, version: str, **record: str) -> list[Finding]:
    known = replace(KNOWN, record={"board": "box", "fw": version, **record})
    return list(examine_firmware(known, folder, NOW))


def test_where_nothing_is_offered_nothing_is_said(tmp_path: Path) -> None:
    assert firmware(None, "2.4.2") == []
    assert [one.verdict for one in firmware(tmp_path, "2.4.2")] == ["ok"], "there is no folder for its board"
    (missing,) = firmware(tmp_path / "missing", "2.4.2")
    assert missing.verdict == "problem" and "FLEET_FIRMWARE_DIR" in missing.advice


def test_old_firmware_is_named_with_the_reason(tmp_path: Path) -> None:
    write_image(tmp_path, "box", "2.5.0")
    assert [one.verdict for one in firmware(tmp_path, "2.5.0")] == ["ok"]
    (due,) = firmware(tmp_path, "2.4.2")
    assert due.verdict == "warning" and "2.5.0 is offered" in due.message and "switch it off and on" in due.advice
    (stale,) = firmware(tmp_path, "2.4.2", **{"fw:12345678": f"2.5.0 {NOW - 3600} 4"})
    assert stale.verdict == "problem" and "partitions" in stale.advice and "FLEET_HTTP_PUBLIC" in stale.advice
    (again,) = firmware(tmp_path, "2.4.2", **{"fw:12345678": f"2.5.0 {NOW - 90_000} 4"})
    assert again.verdict == "warning", "more than a day ago"
    (odd,) = firmware(tmp_path, "nightly")
    assert odd.verdict == "warning" and "nightly" in odd.message


def test_an_image_that_cannot_be_offered_is_named(tmp_path: Path) -> None:
    write_image(tmp_path, "box", "2.5.0")
    (tmp_path / "box" / "2.6.0.bin").write_bytes(b"no image")
    (unusable,) = firmware(tmp_path, "2.5.0")
    assert unusable.verdict == "warning" and "2.6.0.bin: there is no 2.6.0.bin.sha256" in unusable.message
    assert "sha256" in unusable.advice
