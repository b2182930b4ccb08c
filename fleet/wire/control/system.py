"""What runs, and in which state."""

from fleet.wire.control.shapes import Shape, Time


class WorkerState(Shape):
    """A worker, and the shards that it owns."""

    id: str
    shards: list[int]


class EdgeState(Shape):
    """An edge: its address for devices, its sessions, whether it is stopping, its Chinese offline voices if any."""

    id: str
    host: str
    port: int
    sessions: int
    stopping: bool
    voices: list[str]


class DatabaseState(Shape):
    """The database of control: `sqlite` or `postgresql`, and the revision of its tables."""

    kind: str
    revision: str


class SiteState(Shape):
    """What devices are told: the address that people enter into them, and the time zone of those without an own one."""

    ota_url: str
    timezone: str


class ProcessState(Shape):
    """A process of the site, as it says within the last quarter of a minute.

    `role` is the name of its command. `faults` says why it is not ready, empty if it is. `broker` is the address of the
    MQTT broker to which it connects, empty if it connects to none.
    """

    id: str
    role: str
    version: str
    since: Time
    faults: str
    broker: str
    connected: bool


class BrokerState(Shape):
    """A broker: how many processes say that they are connected to it, and how many that they are not."""

    address: str
    connected: int
    away: int


class ShardLag(Shape):
    """What waits in a shard: messages for its worker, and events for control."""

    shard: int
    messages: int
    events: int


class System(Shape):
    """The whole site. `events_waiting` are events that the shards wrote and control has not read yet.

    `lags` are the shards in which something waits, those with the most first, at most 100; `messages_waiting` is the
    sum over all shards.
    """

    version: str
    database: DatabaseState
    shards: int
    shards_without_owner: list[int]
    workers: list[WorkerState]
    edges: list[EdgeState]
    processes: list[ProcessState]
    brokers: list[BrokerState]
    events_waiting: int
    messages_waiting: int
    lags: list[ShardLag]
    site: SiteState
    leader: str | None
    """The process of control that does the work in the background."""
