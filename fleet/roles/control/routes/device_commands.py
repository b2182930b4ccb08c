"""`/v1/devices/{mac}/commands`: calls of tools that wait for a device. Each is a job for one device."""

from typing import Annotated, Final

from fastapi import Path, Request, Response

from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.sql.job_rows import ACTIVE, ExecutionRow, JobRow, JobRows, NewJob
from fleet.core.permissions import DEVICES_COMMAND, DEVICES_DANGEROUS, DEVICES_READ
from fleet.core.tool_policy import risk_of
from fleet.roles.control.access import Who, milliseconds
from fleet.roles.control.job_policies import body_of
from fleet.roles.control.own_devices import OwnDevices
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routes.device_calls import find_tool, fit, shown
from fleet.roles.control.routes.jobs import MOST_ACTIVE
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.device_commands import CommandState, DeviceCommandRequest, DeviceCommandState
from fleet.wire.control.jobs import JobPolicy, JobRequest
from fleet.wire.control.shapes import ListPage, time_of
from fleet.wire.job_states import COMMAND

CommandId = Annotated[int, Path(ge=1, lt=2**62)]
_SHOWN = 100
_SUPERSEDED: Final = "superseded"


class DeviceCommandRoutes:
    """Makes, shows and cancels commands; the leader of control does the work, as for jobs."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._own = services, OwnDevices(services)
        self._devices, self._lists = Devices(services.store), ToolLists(services.store)
        path = "/devices/{mac}/commands"
        routes.add(f"GET {path}", self.list, DEVICES_READ)
        routes.add(f"POST {path}", self.add, DEVICES_COMMAND, model=DeviceCommandState, status=201)
        routes.add(f"GET {path}/{{command}}", self.read, DEVICES_READ)
        routes.add(f"POST {path}/{{command}}:cancel", self.cancel, DEVICES_COMMAND, model=DeviceCommandState)

    async def list(self, who: Who, mac: str) -> ListPage[DeviceCommandState]:
        """Return the newest commands of a device, at most 100."""
        device = await self._own.known(who, mac)
        rows = JobRows(self._services.database, who.tenant)
        found = await rows.named(COMMAND, _query(device), _SHOWN)
        return ListPage(items=[await _shape(rows, device, row) for row in found], next=None)

    async def add(self, request: Request, who: Who, mac: str, body: DeviceCommandRequest) -> Response:
        """Call a tool as soon as the device is there: 3 to 13 seconds after it connects. It is sent at most once.

        A dangerous tool also needs the scope devices:dangerous.
        """
        device, now = await self._own.known(who, mac), milliseconds()
        tool, source = await find_tool(self._devices, self._lists, device, body.tool)
        if risk_of(tool.name, source) == "dangerous" and DEVICES_DANGEROUS not in who.scopes:
            raise Problem(403, "scope-missing", f"the token has not the scope {DEVICES_DANGEROUS}")
        arguments = fit(tool, body.arguments)
        async with self._services.changes.begin(request) as change:
            rows = JobRows(change.sql, who.tenant)
            if await rows.active() >= MOST_ACTIVE:
                raise Problem(409, "too-many-jobs", f"at most {MOST_ACTIVE} jobs and commands are not over at a time")
            checked = body.model_copy(update={"arguments": arguments})
            row = await rows.add(_job(device, checked, now, who.actor))
            after = {**body.model_dump(exclude_defaults=True), "arguments": shown(arguments), "command": row.id}
            await change.audit("device.command", f"device/{device}", after=after)
            answer = await _shape(rows, device, row)
            return change.answer(answer, 201, headers={"Location": f"/v1/devices/{device}/commands/{row.id}"})

    async def read(self, who: Who, mac: str, command: CommandId) -> DeviceCommandState:
        """Return a command."""
        device, rows = await self._own.known(who, mac), JobRows(self._services.database, who.tenant)
        return await _shape(rows, device, await _row(rows, device, command))

    async def cancel(self, request: Request, who: Who, mac: str, command: CommandId) -> Response:
        """Give a command up that was not sent; one that is over, or was sent, stays as it is."""
        device = await self._own.known(who, mac)
        async with self._services.changes.begin(request) as change:
            rows = JobRows(change.sql, who.tenant)
            row = await _row(rows, device, command, lock=True)
            if row.state in ACTIVE:
                row = await rows.change(command, state="stopping")
            await change.audit("device.command_cancel", f"device/{device}", after={"command": command})
            return change.answer(await _shape(rows, device, row))


async def _row(rows: JobRows, device: str, command: int, *, lock: bool = False) -> JobRow:
    row = await rows.read(command, lock=lock)
    if row is None or row.name != COMMAND or row.query != _query(device):
        raise not_found("command")
    return row


def _query(device: str) -> str:
    return f"mac={device}"


def _job(device: str, body: DeviceCommandRequest, now: int, actor: str) -> NewJob:
    # What was never sent in time is tried again, until it expires. What may have been sent never is.
    policy = JobPolicy(
        retries=10, retry_seconds=10, repeatable=False, idle=body.idle, expires_seconds=body.expires_seconds
    )
    asked = JobRequest(
        name=COMMAND, kind="tool", tool=body.tool, arguments=body.arguments, query=_query(device), policy=policy
    )
    return NewJob(
        name=COMMAND,
        kind="tool",
        body=body_of(asked),
        query=asked.query,
        continuous=False,
        policy=policy.model_dump(),
        created=now,
        created_by=actor[:100],
        expires=now + body.expires_seconds * 1000,
        supersedes=f"{COMMAND} {device} {body.key}" if body.key else "",
    )


async def _shape(rows: JobRows, device: str, row: JobRow) -> DeviceCommandState:
    found = await rows.executions(row.id, None, [], 1)
    state, text = _state(row, found[0] if found else None)
    return DeviceCommandState(
        id=row.id,
        device=device,
        tool=row.body["tool"],
        arguments=row.body["arguments"],
        key=row.supersedes.rpartition(" ")[2],
        state=state,
        text=text,
        created=time_of(row.created),
        expires=time_of(row.expires),
    )


def _state(row: JobRow, execution: ExecutionRow | None) -> tuple[CommandState, str]:
    given_up: CommandState = _SUPERSEDED if row.reason.startswith(_SUPERSEDED) else "cancelled"
    if execution is None:
        return (given_up if row.state in ("stopping", "stopped") else "queued"), row.reason
    match execution.state:
        case "cancelled":
            return given_up, row.reason
        case "timed_out" | "verifying":
            return "waiting", execution.text
        case state:
            return state, execution.text
