"""The resources that all parts of a worker share."""

from dataclasses import dataclass

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.memories import Memories
from fleet.adapters.redis.devices.reports import Reports
from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.redis.sessions.calls import CallTable
from fleet.adapters.redis.sessions.conversations import Conversations
from fleet.adapters.redis.sessions.personas import Personas
from fleet.adapters.redis.sessions.replies import Replies
from fleet.adapters.redis.sessions.sessions import Sessions
from fleet.adapters.redis.shards.edges import Edges
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.core.ports import Llm
from fleet.core.server_tools import ServerTools
from fleet.roles.worker.settings import WorkerSettings
from fleet.wire.identity import CredentialKeys


@dataclass(frozen=True, slots=True)
class WorkerResources:
    """Settings, the tables of the store, the model, and the keys for credentials."""

    settings: WorkerSettings
    keys: CredentialKeys
    llm: Llm
    store: Store
    devices: Devices
    sessions: Sessions
    tools: ToolLists
    calls: CallTable
    conversations: Conversations
    reports: Reports
    replies: Replies
    personas: Personas
    inboxes: Inboxes
    edges: Edges
    server_tools: ServerTools | None = None
    """Tools of the server, offered to the model with those of the device."""
    memories: Memories | None = None
    """What is known from the devices' users; None if nothing is to be remembered."""

    @classmethod
    def of(
        cls,
        settings: WorkerSettings,
        keys: CredentialKeys,
        llm: Llm,
        store: Store,
        server_tools: ServerTools | None = None,
    ) -> "WorkerResources":
        inboxes, remembers = Inboxes(store), settings.memory == "on"
        return cls(
            settings=settings,
            keys=keys,
            llm=llm,
            store=store,
            devices=Devices(store),
            sessions=Sessions(store, inboxes),
            tools=ToolLists(store),
            calls=CallTable(store),
            conversations=Conversations(store, settings.history_seconds, remembers=remembers),
            reports=Reports(store),
            replies=Replies(store),
            personas=Personas(store),
            inboxes=inboxes,
            edges=Edges(store),
            server_tools=server_tools,
            memories=Memories(store) if remembers else None,
        )
