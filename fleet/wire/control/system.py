"""What runs, and in which state."""

from fleet.wire.control.shapes import Shape


class WorkerState(Shape):
    """A worker, and the shards that it owns."""

    id: str
    shards: list[int]


class EdgeState(Shape):
    """An edge: its address for devices, its sessions, and whether it is stopping."""

    id: str
    host: str
    port: int
    sessions: int
    stopping: bool


class DatabaseState(Shape):
    """The database of control: `sqlite` or `postgresql`, and the revision of its tables."""

    kind: str
    revision: str


class SiteState(Shape):
    """What devices are told: the address that people enter into them, and the time zone of those without an own one."""

    ota_url: str
    timezone: str


class System(Shape):
    """The whole site. `events_waiting` are events that the shards wrote and control has not read yet."""

    version: str
    database: DatabaseState
    shards: int
    shards_without_owner: list[int]
    workers: list[WorkerState]
    edges: list[EdgeState]
    events_waiting: int
    site: SiteState
    leader: str | None
    """The process of control that does the work in the background."""
