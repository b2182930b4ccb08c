"""The work in the background: each part runs on one process of control."""

from collections.abc import Sequence

from fleet.adapters.files.operator_tokens import OperatorTokens, tokens_path
from fleet.adapters.redis.shards.events import Outbox
from fleet.adapters.sql.event_rows import StoredEvent
from fleet.roles.control.agents.compiler import AgentCompiler
from fleet.roles.control.leader.alerts import Alerts
from fleet.roles.control.leader.device_copies import CopyPace, DeviceCopies
from fleet.roles.control.leader.event_collector import EventCollector
from fleet.roles.control.leader.history_limits import HistorySweeper, Lives
from fleet.roles.control.leader.job_devices import JobDevices
from fleet.roles.control.leader.job_feeder import JobFeeder
from fleet.roles.control.leader.job_removal import JobRemoval
from fleet.roles.control.leader.lead import BackgroundPart
from fleet.roles.control.leader.operator_talks import OperatorTalks
from fleet.roles.control.leader.state_keeper import StateKeeper
from fleet.roles.control.leader.tidying import Tidying
from fleet.roles.control.services import ControlServices


def background_parts(services: ControlServices) -> list[BackgroundPart]:
    """Return the parts of a process of control."""
    copies = DeviceCopies(services.store, services.database, CopyPace(presence_days=services.settings.event_days))
    feeder = JobFeeder(services.store, services.database, services.settings.timezone)

    keeper = StateKeeper(services.store, services.database, copies.refresh, services.settings.state_poll_hours)

    def offer(stored: Sequence[StoredEvent]) -> None:
        services.following.tail.offer(stored)
        feeder.notice(stored)
        keeper.notice(stored)

    shards = range(services.store.keys.shards)
    collector = EventCollector(Outbox(services.store), services.database, copies.refresh, offer, shards)
    lives = Lives(events=services.settings.event_days, conversations=services.settings.conversation_days)
    agents = AgentCompiler(services.database, services.store)
    settings = services.settings
    operators = OperatorTokens(tokens_path(settings.operator_tokens_file, settings.data_dir))
    return [
        BackgroundPart("agents", agents.run),
        BackgroundPart("tidying", Tidying(services.database, services.settings.audit_days).run),
        BackgroundPart("device copies", lambda fence: copies.run()),
        BackgroundPart("events", lambda fence: collector.run(int(fence))),
        BackgroundPart("alerts", Alerts(services.database, services.settings.event_days).run),
        BackgroundPart("devices of jobs", JobDevices(services.database).run),
        BackgroundPart("jobs", feeder.run),
        BackgroundPart("old jobs", JobRemoval(services.database, services.settings.job_days).run),
        BackgroundPart("desired states", keeper.run),
        BackgroundPart("talks of operators", OperatorTalks(operators, services.voice).run),
        BackgroundPart("history", HistorySweeper(services.database, lives).run),
    ]
