"""Who may be the device of a browser: for how long, and nobody else."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleet.adapters.files.operator_tokens import OperatorTokens, tokens_path
from fleet.adapters.redis.access.admissions import Admission, Admissions
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.access.voice_tickets import VoiceTicket, VoiceTickets
from fleet.adapters.sql.account_rows import AccountRows
from fleet.core.permissions import DEVICES_COMMAND
from fleet.roles.control.leader.operator_talks import OperatorTalks
from fleet.roles.control.voice_devices import VoiceDevices
from tests.support.console_browser import ConsoleBrowser, add_account, console_browser
from tests.support.control_server import FULL, ControlStage

ENDS: list[tuple[str, dict[str, Any]]] = [
    ("PATCH /v1/accounts/{}", {"json": {"disabled": True}}),
    ("PATCH /v1/accounts/{}", {"json": {"role": "viewer"}}),
    ("POST /v1/accounts/{}:sign_out", {}),
    ("POST /v1/accounts/{}:password", {"json": {"password": "another long password"}}),
    ("DELETE /v1/accounts/{}", {}),
]


async def taken(stage: ControlStage, answer: dict[str, Any]) -> VoiceTicket:
    found = await VoiceTickets(stage.services.store).take(answer["ticket"])
    assert found is not None
    return found


async def is_over(stage: ControlStage, ticket: VoiceTicket) -> bool:
    """Whether neither a ticket nor a connection that came in by it counts."""
    known = await Admissions(stage.services.store).read(ticket.device)
    minima = await Revocations(stage.services.store).minima()
    return known.generation > ticket.generation and minima.of(ticket.device) > ticket.generation


async def test_a_stranger_who_owns_the_device_of_a_token_loses_it(stage: ControlStage) -> None:
    first = await taken(stage, (await stage.ask("POST /v1/talks")).json())
    admissions = Admissions(stage.services.store)
    await admissions.unbind(first.device)
    await admissions.bind(first.device, "stranger")
    stolen = await admissions.read(first.device)
    ticket = await taken(stage, (await stage.ask("POST /v1/talks")).json())
    assert (ticket.device, ticket.client) == (first.device, first.client)
    assert ticket.generation > stolen.generation
    assert (await Revocations(stage.services.store).minima()).of(first.device) > stolen.generation
    again = await taken(stage, (await stage.ask("POST /v1/talks")).json())
    assert again == ticket, "a second ticket does not end the first page before it is used"


async def test_a_revoked_token_ends_its_talks(stage: ControlStage) -> None:
    made = (await stage.ask("POST /v1/tokens", json={"name": "page", "scopes": [DEVICES_COMMAND]})).json()
    ticket = await taken(stage, (await stage.ask("POST /v1/talks", made["token"])).json())
    assert not await is_over(stage, ticket)
    assert (await stage.ask(f"DELETE /v1/tokens/{made['id']}")).status_code == 204
    assert await is_over(stage, ticket)


async def test_a_removed_operator_of_the_file_talks_no_more(stage: ControlStage) -> None:
    settings, services = stage.services.settings, stage.services
    file = OperatorTokens(tokens_path(settings.operator_tokens_file, settings.data_dir))
    token = file.add("guest", frozenset({DEVICES_COMMAND}))
    ticket = await taken(stage, (await stage.ask("POST /v1/talks", token)).json())
    work = OperatorTalks(file, services.voice)
    await work.look()
    assert not await is_over(stage, ticket)
    file.remove("guest")
    await work.look()
    assert await is_over(stage, ticket)


async def test_who_was_ended_by_another_process_gets_no_ticket(stage: ControlStage) -> None:
    made = (await stage.ask("POST /v1/tokens", json={"name": "page", "scopes": [DEVICES_COMMAND]})).json()
    ticket = await taken(stage, (await stage.ask("POST /v1/talks", made["token"])).json())
    # This process accepts the token for two seconds more.
    assert await stage.services.tokens.remove(1, made["id"])
    await stage.services.voice.end("token", made["id"])
    answer = await stage.ask("POST /v1/talks", made["token"])
    assert answer.status_code == 401 and "ticket" not in answer.text
    assert await is_over(stage, ticket)


async def test_a_sign_in_that_another_process_ended_gets_no_ticket(stage: ControlStage) -> None:
    account = await add_account(stage, "ling", "operator")
    async with console_browser(stage) as browser:
        await talked(stage, browser)
        await AccountRows(stage.database).change(account.id)
        await stage.services.voice.end("account", account.id)
        answer = await browser.ask("POST /v1/talks")
        assert answer.status_code == 401 and "ticket" not in answer.text


async def test_an_operator_who_is_removed_while_he_asks_talks_no_more(
    stage: ControlStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, voice = stage.services.settings, stage.services.voice
    file = OperatorTokens(tokens_path(settings.operator_tokens_file, settings.data_dir))
    token, work = file.add("guest", frozenset({DEVICES_COMMAND})), OperatorTalks(file, voice)
    await taken(stage, (await stage.ask("POST /v1/talks", token)).json())
    own = VoiceDevices.own

    async def remove_before(devices: VoiceDevices, mac: str) -> Admission:
        file.remove("guest")
        await work.look()
        return await own(devices, mac)

    monkeypatch.setattr(VoiceDevices, "own", remove_before)
    ticket = await taken(stage, (await stage.ask("POST /v1/talks", token)).json())
    await work.look()
    assert await is_over(stage, ticket)


async def test_a_ticket_ends_with_what_it_was_asked_for(stage: ControlStage) -> None:
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    wanted = {"name": "page", "scopes": [DEVICES_COMMAND], "expires": expires.isoformat()}
    made = (await stage.ask("POST /v1/tokens", json=wanted)).json()
    ticket = await taken(stage, (await stage.ask("POST /v1/talks", made["token"])).json())
    assert ticket.until == expires.timestamp() * 1000
    assert (await taken(stage, (await stage.ask("POST /v1/talks")).json())).until == 0, "this token does not expire"
    await add_account(stage, "ling", "operator")
    async with console_browser(stage) as browser:
        ticket = await talked(stage, browser)
        shown = datetime.fromisoformat((await browser.ask("GET /v1/session")).json()["expires"])
        assert abs(ticket.until - shown.timestamp() * 1000) < 1000


async def test_who_signs_out_talks_no_more(stage: ControlStage) -> None:
    await add_account(stage, "ling", "operator")
    async with console_browser(stage) as browser:
        ticket = await talked(stage, browser)
        assert (await browser.ask("DELETE /v1/session")).status_code == 204
        assert await is_over(stage, ticket)


@pytest.mark.parametrize(("verb", "body"), ENDS, ids=["disable", "role", "sign-out", "password", "delete"])
async def test_what_ends_the_sign_ins_of_an_account_ends_its_talks(
    stage: ControlStage, verb: str, body: dict[str, Any]
) -> None:
    await add_account(stage, "ling", "operator")
    async with console_browser(stage) as browser:
        ticket = await talked(stage, browser)
        number = (await browser.ask("GET /v1/session")).json()["account"]
        assert (await stage.ask(verb.format(number), FULL, **body)).status_code in (200, 204)
        assert await is_over(stage, ticket)


async def test_an_account_that_signs_out_everywhere_ends_its_talks(stage: ControlStage) -> None:
    await add_account(stage, "ling", "operator")
    async with console_browser(stage) as browser:
        ticket = await talked(stage, browser)
        assert (await browser.ask("POST /v1/session:end_all")).status_code == 204
        assert await is_over(stage, ticket)


async def talked(stage: ControlStage, browser: ConsoleBrowser) -> VoiceTicket:
    assert (await browser.sign_in("ling")).status_code == 201
    ticket = await taken(stage, (await browser.ask("POST /v1/talks")).json())
    assert not await is_over(stage, ticket)
    return ticket
