"""What the routes of control use."""

from dataclasses import dataclass, field

from fleet.adapters.redis.client.store import Store
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.token_rows import TokenRows
from fleet.core.agent_settings import AgentModels
from fleet.roles.control.access import Principal, TokenAccess, token_needed
from fleet.roles.control.accounts.access import AccountAccess
from fleet.roles.control.accounts.password_gate import PasswordGate
from fleet.roles.control.agents.rule_changes import RuleChanges
from fleet.roles.control.agents.trial import NoModels
from fleet.roles.control.changes import Changes
from fleet.roles.control.cursors import Cursors
from fleet.roles.control.first_token import FirstTokenCode
from fleet.roles.control.following.following import Following
from fleet.roles.control.settings import ControlSettings
from fleet.roles.control.voice_devices import VoiceDevices
from fleet.wire.identity import CredentialKeys


@dataclass(frozen=True, slots=True)
class ControlServices:
    """What the routes of control use."""

    settings: ControlSettings
    database: Database
    store: Store
    access: TokenAccess
    accounts: AccountAccess
    passwords: PasswordGate
    changes: Changes
    rules: RuleChanges
    cursors: Cursors
    first_token: FirstTokenCode
    following: Following
    voice: VoiceDevices
    models: AgentModels = field(default_factory=NoModels)
    """For trials of agents."""
    keys: CredentialKeys | None = None
    """Of devices' passwords; None if this process has none."""

    async def end_sign_ins(self, account: int) -> None:
        """End streams and talks of an account whose sign-ins SQL has ended; this process accepts them no more."""
        self.accounts.forget(account=account)
        self.following.forget_sign_ins(account=account)
        await self.voice.end("account", account)

    async def check_now(self, who: Principal) -> None:
        """Check that somebody's token or sign-in still counts, whatever this process knew of it.

        Raises:
            Problem: It was ended, perhaps by another process (401).
            Unavailable: The database does not answer.
        """
        revoked = bool(who.token) and not await self.tokens.existing([who.token])
        if revoked or await self.accounts.ended([who]):
            raise token_needed()

    @property
    def tokens(self) -> TokenRows:
        """The tokens, outside of a change."""
        return TokenRows(self.database)
