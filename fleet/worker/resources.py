"""What every part of a worker works with."""

from dataclasses import dataclass

from fleet.core.ports import Llm
from fleet.core.server_tools import ServerTools
from fleet.settings import Settings
from fleet.store.calls import Calls
from fleet.store.connect import Store
from fleet.store.conversations import Conversations
from fleet.store.devices import Devices
from fleet.store.edges import Edges
from fleet.store.mailbox import Mailboxes
from fleet.store.personas import Personas
from fleet.store.replies import Replies
from fleet.store.reports import Reports
from fleet.store.sessions import Sessions
from fleet.store.tools import ToolLists
from fleet.wire.identity import Keys


@dataclass(frozen=True, slots=True)
class Resources:
    """Settings, the tables of the store, the model, and the keys to sign in with."""

    settings: Settings
    keys: Keys
    llm: Llm
    store: Store
    devices: Devices
    sessions: Sessions
    tools: ToolLists
    calls: Calls
    conversations: Conversations
    reports: Reports
    replies: Replies
    personas: Personas
    mailboxes: Mailboxes
    edges: Edges
    server_tools: ServerTools | None = None
    """Offered to the model beside those of the device; None for none."""

    @classmethod
    def of(
        cls, settings: Settings, keys: Keys, llm: Llm, store: Store, server_tools: ServerTools | None = None
    ) -> "Resources":
        return cls(
            settings=settings,
            keys=keys,
            llm=llm,
            store=store,
            devices=Devices(store),
            sessions=Sessions(store),
            tools=ToolLists(store),
            calls=Calls(store),
            conversations=Conversations(store, settings.history_seconds),
            reports=Reports(store),
            replies=Replies(store),
            personas=Personas(store),
            mailboxes=Mailboxes(store),
            edges=Edges(store),
            server_tools=server_tools,
        )
