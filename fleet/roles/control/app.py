"""The app of control."""

from fastapi import FastAPI

from fleet.adapters.files.local_token import read_local_token
from fleet.adapters.files.operator_tokens import OperatorTokens, tokens_path
from fleet.adapters.redis.access.sign_ins import SignIns
from fleet.adapters.redis.client.store import Store
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.token_rows import TokenRows
from fleet.core.agent_settings import AgentModels
from fleet.core.rates import Rate
from fleet.roles.control.access import TokenAccess
from fleet.roles.control.accounts.access import AccountAccess
from fleet.roles.control.accounts.cookies import KnownBrowsers
from fleet.roles.control.accounts.password_gate import PasswordGate
from fleet.roles.control.agents.rule_changes import RuleChanges
from fleet.roles.control.agents.trial import NoModels
from fleet.roles.control.changes import Changes
from fleet.roles.control.cursors import Cursors
from fleet.roles.control.first_token import FirstTokenCode
from fleet.roles.control.following.following import Following
from fleet.roles.control.idempotency import Idempotency
from fleet.roles.control.problems import add_problems
from fleet.roles.control.request_ids import RequestIds
from fleet.roles.control.routes.accounts import AccountsRoutes
from fleet.roles.control.routes.agents import AgentsRoutes
from fleet.roles.control.routes.alerts import AlertRoutes
from fleet.roles.control.routes.announcements import AnnouncementRoutes
from fleet.roles.control.routes.assignments import AssignmentsRoutes
from fleet.roles.control.routes.audit import AuditRoutes
from fleet.roles.control.routes.claims import ClaimRoutes
from fleet.roles.control.routes.console import ConsoleRoutes
from fleet.roles.control.routes.conversations import ConversationRoutes
from fleet.roles.control.routes.desired import DesiredRoutes
from fleet.roles.control.routes.device_calls import DeviceCallRoutes
from fleet.roles.control.routes.device_commands import DeviceCommandRoutes
from fleet.roles.control.routes.device_decisions import DecisionRoutes
from fleet.roles.control.routes.device_ends import EndRoutes
from fleet.roles.control.routes.device_files import FileRoutes
from fleet.roles.control.routes.device_findings import DeviceFindingRoutes
from fleet.roles.control.routes.device_memory import DeviceMemoryRoutes
from fleet.roles.control.routes.device_reminders import DeviceReminderRoutes
from fleet.roles.control.routes.device_texts import DeviceTextRoutes
from fleet.roles.control.routes.device_tools import DeviceToolRoutes
from fleet.roles.control.routes.devices import DeviceRoutes
from fleet.roles.control.routes.events import EventRoutes
from fleet.roles.control.routes.groups import GroupRoutes
from fleet.roles.control.routes.health import HealthRoutes
from fleet.roles.control.routes.images import ImageRoutes
from fleet.roles.control.routes.job_executions import JobExecutionRoutes
from fleet.roles.control.routes.jobs import JobRoutes
from fleet.roles.control.routes.me import MeRoutes
from fleet.roles.control.routes.openapi import OpenApiRoutes
from fleet.roles.control.routes.previews import PreviewRoutes
from fleet.roles.control.routes.providers import ProvidersRoutes
from fleet.roles.control.routes.session import SessionRoutes
from fleet.roles.control.routes.system import SystemRoutes
from fleet.roles.control.routes.talks import TalkRoutes
from fleet.roles.control.routes.tokens import TokensRoutes
from fleet.roles.control.routes.usage import UsageRoutes
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.settings import ControlSettings
from fleet.roles.control.talk_places import TalkPlaces
from fleet.roles.control.voice_devices import VoiceDevices
from fleet.wire.identity import CredentialKeys

_NOUNS = (
    *(AgentsRoutes, AssignmentsRoutes, PreviewRoutes, ProvidersRoutes),
    *(AccountsRoutes, AuditRoutes, MeRoutes, SessionRoutes, SystemRoutes, TokensRoutes),
    *(AlertRoutes, ConversationRoutes, EventRoutes, UsageRoutes),
    *(ClaimRoutes, DeviceRoutes, DecisionRoutes, EndRoutes, FileRoutes, GroupRoutes),
    *(DesiredRoutes, DeviceCallRoutes, DeviceFindingRoutes, DeviceTextRoutes, DeviceToolRoutes, TalkRoutes),
    *(DeviceMemoryRoutes, DeviceReminderRoutes),
    *(AnnouncementRoutes, DeviceCommandRoutes, ImageRoutes, JobRoutes, JobExecutionRoutes),
)
"""Each adds the routes of one noun."""


def build_services(
    settings: ControlSettings,
    database: Database,
    store: Store,
    cursor_key: bytes,
    models: AgentModels | None = None,
    keys: CredentialKeys | None = None,
) -> ControlServices:
    """Return what the routes and the work in the background share.

    Args:
        settings: Of the process.
        database: Has the newest tables.
        store: Redis.
        cursor_key: Signs cursors and cookies, and names the devices of browsers; the same of all processes.
        models: For trials of agents; None for none.
        keys: Of devices' passwords.
    """
    operators = OperatorTokens(tokens_path(settings.operator_tokens_file, settings.data_dir))
    local = read_local_token(settings.data_dir)
    accounts = AccountAccess(database, SignIns(store))
    rate, changes = Rate.parse(settings.rate_control), Changes(database)
    return ControlServices(
        settings=settings,
        database=database,
        store=store,
        access=TokenAccess(TokenRows(database), operators, accounts, rate, local),
        accounts=accounts,
        passwords=PasswordGate(database, KnownBrowsers(cursor_key)),
        changes=changes,
        rules=RuleChanges(changes, database),
        cursors=Cursors(cursor_key),
        first_token=FirstTokenCode(),
        following=Following.of(database, store, accounts),
        voice=VoiceDevices(store, cursor_key),
        models=models or NoModels(),
        keys=keys,
    )


def build_app(services: ControlServices) -> FastAPI:
    """Return the app of control."""
    app = FastAPI(title="fleet", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    routes = Routes(app.router, services.access, Idempotency(services.database))
    for noun in _NOUNS:
        noun(services, routes)
    OpenApiRoutes(app, routes)
    HealthRoutes(app.router, services.database, services.store)
    ConsoleRoutes(app.router, TalkPlaces.by(services.settings))
    add_problems(app)
    app.add_middleware(RequestIds)
    return app
