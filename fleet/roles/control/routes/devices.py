"""`/v1/devices`: search, register, change."""

from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.responses import JSONResponse

from fleet.adapters.sql.device_counts import COUNTED_FIELDS, DeviceCounts
from fleet.adapters.sql.device_rows import DeviceChange, DeviceRows, NewDevice, TooManyTags
from fleet.adapters.sql.device_search import DeviceSearch
from fleet.adapters.sql.presence_rows import PresenceRows
from fleet.core.permissions import DEVICES_READ, DEVICES_WRITE
from fleet.core.query.fields import milliseconds
from fleet.roles.control.access import Principal, Who
from fleet.roles.control.device_queries import device_json, page_of, read_fields, read_mac, read_query, shape_of
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routing import VERSIONED, Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.versions import etag, expected_version
from fleet.wire.control.devices import (
    Device,
    DeviceAddition,
    DevicePage,
    DevicePatch,
    DeviceQuery,
    FacetList,
    FacetQuery,
    FieldCounts,
    PresenceHistory,
    PresenceMoment,
    TagList,
    TagPatch,
)
from fleet.wire.control.shapes import GivenTime, time_of

_MOST_COUNTED = 10_000
_MOST_FACETS = 8
Limit = Annotated[int, Query(ge=1, le=500)]
FieldNames = Annotated[str, Query(max_length=400, description="Fields of the device, with commas between them.")]


class DeviceRoutes:
    """Devices as rows of the registry."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._database = services, services.database
        self._counts, self._presence = DeviceCounts(services.database), PresenceRows(services.database)
        routes.add("GET /devices", self.search, DEVICES_READ, model=DevicePage)
        routes.add("POST /devices", self.register, DEVICES_WRITE, model=Device, status=201)
        routes.add("GET /devices:counts", self.count, DEVICES_READ)
        routes.add("GET /devices/{mac}", self.read, DEVICES_READ, model=Device)
        routes.add("PATCH /devices/{mac}", self.change, DEVICES_WRITE, model=Device, notes=VERSIONED)
        routes.add("PUT /devices/{mac}/tags", self.put_tags, DEVICES_WRITE, model=Device, notes=VERSIONED)
        routes.add("PATCH /devices/{mac}/tags", self.patch_tags, DEVICES_WRITE, model=Device, notes=VERSIONED)
        routes.add("GET /devices/{mac}/presence", self.presence, DEVICES_READ)

    async def search(self, who: Who, query: Annotated[DeviceQuery, Query()]) -> JSONResponse:
        """Return a page of the devices that a query means."""
        names, condition = read_fields(query.fields), read_query(query.filter)
        search = DeviceSearch(self._database, who.tenant)
        page = await page_of(search, condition, query, self._services.cursors, who)
        answer: dict[str, Any] = {
            "items": [device_json(one, names) for one in page.devices],
            "next": page.cursor or None,
        }
        if query.count:
            total, complete = await search.count(condition, _MOST_COUNTED)
            answer |= {"total": total, "total_is_least": not complete}
        return JSONResponse(answer)

    async def count(self, who: Who, query: Annotated[FacetQuery, Query()]) -> FacetList:
        """Return how many devices have each value of some fields."""
        names = [name.strip() for name in query.by.split(",") if name.strip()]
        condition = read_query(query.filter)
        for name in names[: _MOST_FACETS + 1]:
            if name not in COUNTED_FIELDS and not name.startswith("tag."):
                known = ", ".join((*COUNTED_FIELDS, "tag.KEY"))
                raise Problem(400, "bad-fields", f"devices are not counted by {name[:60]!r}; fields are {known}")
        if len(names) > _MOST_FACETS or "\0" in query.by:
            raise Problem(400, "bad-fields", f"devices are counted by at most {_MOST_FACETS} fields")
        items = []
        for name in names:
            counts = await self._counts.by(who.tenant, name, condition)
            items.append(FieldCounts(field=name, values=dict(counts.values), complete=counts.complete))
        return FacetList(items=items)

    async def register(self, request: Request, who: Who, body: DeviceAddition) -> Response:
        """Register a device before it is seen. It is not bound by that: use `:bind`."""
        new = NewDevice(**{name: getattr(body, name) for name in DeviceAddition.model_fields})
        async with self._services.changes.begin(request) as change:
            rows = DeviceRows(change.sql, who.tenant)
            taken = await rows.add([new])
            added = None if taken else await rows.read(body.mac)
            if added is None:
                raise Problem(409, "taken", "this MAC is registered already")
            after = body.model_dump(mode="json", exclude={"mac"}, exclude_defaults=True)
            await change.audit("device.register", f"device/{body.mac}", after=after)
            return change.answer(shape_of(added), status=201, headers={"ETag": etag(added.version)})

    async def read(self, who: Who, mac: str, fields: FieldNames = "") -> JSONResponse:
        """Return a device."""
        names = read_fields(fields)
        found = await DeviceRows(self._database, who.tenant).read(read_mac(mac))
        if found is None:
            raise not_found("device")
        return JSONResponse(device_json(found, names), headers={"ETag": etag(found.version)})

    async def change(self, request: Request, who: Who, mac: str, body: DevicePatch) -> Response:
        """Change what people write about a device; what the body does not name stays."""
        change = DeviceChange(**{name: getattr(body, name) for name in DevicePatch.model_fields})
        return await self._change(request, who, mac, change)

    async def put_tags(self, request: Request, who: Who, mac: str, body: TagList) -> Response:
        """Replace all tags of a device."""
        return await self._change(request, who, mac, DeviceChange(tags=body.tags))

    async def patch_tags(self, request: Request, who: Who, mac: str, body: TagPatch) -> Response:
        """Set or remove single tags of a device."""
        return await self._change(request, who, mac, DeviceChange(single_tags=body.tags))

    async def presence(
        self, who: Who, mac: str, since: GivenTime | None = None, before: GivenTime | None = None, limit: Limit = 100
    ) -> PresenceHistory:
        """Return when a device connected and disconnected, the newest first."""
        name = await self._known(who, mac)
        first = milliseconds(since) if since else 0
        last = milliseconds(before) if before else 2**62
        found = await self._presence.read(who.tenant, name, since=first, before=last, limit=limit)
        items = [PresenceMoment.model_validate({"at": time_of(one.at), "online": one.online}) for one in found]
        return PresenceHistory(items=items, next=items[-1].at if len(items) == limit else None)

    async def _known(self, who: Principal, mac: str) -> str:
        name = read_mac(mac)
        if not await DeviceRows(self._database, who.tenant).present([name]):
            raise not_found("device")
        return name

    async def _change(self, request: Request, who: Principal, mac: str, change: DeviceChange) -> Response:
        name, version = read_mac(mac), expected_version(request)
        async with self._services.changes.begin(request) as audited:
            try:
                changed = await DeviceRows(audited.sql, who.tenant).change(name, change, version=version)
            except TooManyTags as error:
                raise Problem(409, "too-many-tags", str(error)) from error
            if changed is None:
                raise not_found("device")
            before, after = (device_json(one, ("name", "notes", "attributes", "tags")) for one in changed)
            different = [field for field in after if before[field] != after[field]]
            old, new = ({field: one[field] for field in different} for one in (before, after))
            await audited.audit("device.update", f"device/{name}", before=old, after=new)
            return audited.answer(shape_of(changed[1]), headers={"ETag": etag(changed[1].version)})
