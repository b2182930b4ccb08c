"""The resources that all parts of a worker share."""

from dataclasses import dataclass

from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.redis.announcements.reminders import Reminders
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.memories import Memories
from fleet.adapters.redis.devices.reports import Reports
from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.redis.sessions.asks import Asks
from fleet.adapters.redis.sessions.calls import CallTable
from fleet.adapters.redis.sessions.conversations import Conversations
from fleet.adapters.redis.sessions.personas import Personas
from fleet.adapters.redis.sessions.replies import Replies
from fleet.adapters.redis.sessions.sessions import Sessions
from fleet.adapters.redis.sessions.spoken_answers import SpokenAnswers
from fleet.adapters.redis.sessions.transcripts import Transcripts
from fleet.adapters.redis.shards.edges import Edges
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.core.agent_settings import AgentModels
from fleet.core.server_tools import ServerTools
from fleet.roles.worker.settings import WorkerSettings
from fleet.wire.identity import CredentialKeys


@dataclass(frozen=True, slots=True)
class WorkerResources:
    """Settings, the tables of the store, the models, and the keys for credentials."""

    settings: WorkerSettings
    keys: CredentialKeys
    models: AgentModels
    store: Store
    agents: KnownAgents
    memories: Memories
    """What is known from the devices' users."""
    reminders: Reminders
    devices: Devices
    sessions: Sessions
    tools: ToolLists
    calls: CallTable
    asks: Asks
    conversations: Conversations
    reports: Reports
    replies: Replies
    personas: Personas
    inboxes: Inboxes
    edges: Edges
    transcripts: Transcripts
    spoken: SpokenAnswers
    server_tools: ServerTools | None = None
    """Tools of the server, offered to the model with those of the device."""

    @classmethod
    def of(
        cls,
        settings: WorkerSettings,
        keys: CredentialKeys,
        models: AgentModels,
        store: Store,
        server_tools: ServerTools | None = None,
    ) -> "WorkerResources":
        inboxes, remembers = Inboxes(store), settings.memory == "on"
        return cls(
            settings=settings,
            keys=keys,
            models=models,
            store=store,
            agents=KnownAgents(store),
            memories=Memories(store),
            reminders=Reminders(store),
            devices=Devices(store),
            sessions=Sessions(store, inboxes),
            tools=ToolLists(store),
            calls=CallTable(store),
            asks=Asks(store),
            conversations=Conversations(
                store, settings.history_seconds, remembers=remembers, recorded=settings.conversations == "on"
            ),
            reports=Reports(store),
            replies=Replies(store),
            personas=Personas(store),
            inboxes=inboxes,
            edges=Edges(store),
            transcripts=Transcripts(store),
            spoken=SpokenAnswers(store),
            server_tools=server_tools,
        )
