"""What a token or an account may do: scopes, and the roles of accounts."""

from typing import Final

DEVICES_READ: Final = "devices:read"
DEVICES_WRITE: Final = "devices:write"
DEVICES_COMMAND: Final = "devices:command"
DEVICES_DANGEROUS: Final = "devices:dangerous"
GROUPS_WRITE: Final = "groups:write"
AGENTS_READ: Final = "agents:read"
AGENTS_WRITE: Final = "agents:write"
PROVIDERS_WRITE: Final = "providers:write"
JOBS_READ: Final = "jobs:read"
JOBS_WRITE: Final = "jobs:write"
CONVERSATIONS_READ: Final = "conversations:read"
CONVERSATIONS_WRITE: Final = "conversations:write"
MEMORY_READ: Final = "memory:read"
MEMORY_WRITE: Final = "memory:write"
EVENTS_READ: Final = "events:read"
ALERTS_READ: Final = "alerts:read"
ALERTS_WRITE: Final = "alerts:write"
USAGE_READ: Final = "usage:read"
AUDIT_READ: Final = "audit:read"
TOKENS_WRITE: Final = "tokens:write"
ACCOUNTS_WRITE: Final = "accounts:write"
SYSTEM_READ: Final = "system:read"

MEANINGS: Final = {
    DEVICES_READ: "See devices, their tools, groups and presence.",
    DEVICES_WRITE: "Register, change, accept, revoke and forget devices.",
    DEVICES_COMMAND: "Call tools of devices that are not dangerous, and send them text.",
    DEVICES_DANGEROUS: "Call dangerous tools: restart, firmware, assets, pictures, and tools of unknown risk.",
    GROUPS_WRITE: "Make, change and delete groups.",
    AGENTS_READ: "See agents, their versions and the providers.",
    AGENTS_WRITE: "Make, change, publish and assign agents.",
    PROVIDERS_WRITE: "Change providers and their keys. Keys are never shown.",
    JOBS_READ: "See jobs, and what devices answered.",
    JOBS_WRITE: "Make and steer jobs; what they call needs devices:command or devices:dangerous, too.",
    CONVERSATIONS_READ: "Read what users and devices said.",
    CONVERSATIONS_WRITE: "Delete conversations, and switch their recording on.",
    MEMORY_READ: "Read what devices remember of their users.",
    MEMORY_WRITE: "Change and delete what devices remember.",
    EVENTS_READ: "Follow events. Transcripts also need conversations:read.",
    ALERTS_READ: "See alerts and their rules.",
    ALERTS_WRITE: "Close alerts, and change their rules.",
    USAGE_READ: "See tokens, turns and seconds of speech by agent, device and day.",
    AUDIT_READ: "Read the audit log.",
    TOKENS_WRITE: "See, make and revoke tokens. A new token has at most the scopes of its maker.",
    ACCOUNTS_WRITE: "See, make, change and delete accounts whose role allows no more than the maker may.",
    SYSTEM_READ: "See processes, shards, versions and lags.",
}
"""Every scope, and what it allows."""
SCOPES: Final = tuple(MEANINGS)
EVERY_SCOPE: Final = frozenset(SCOPES)

OWNER: Final = "owner"
OPERATOR: Final = "operator"
VIEWER: Final = "viewer"
ROLES: Final = {
    OWNER: EVERY_SCOPE,
    OPERATOR: EVERY_SCOPE - {ACCOUNTS_WRITE, TOKENS_WRITE, PROVIDERS_WRITE},
    VIEWER: frozenset({DEVICES_READ, AGENTS_READ, JOBS_READ, ALERTS_READ, EVENTS_READ, USAGE_READ, SYSTEM_READ}),
}
"""The scopes of each role. A viewer sees nothing of what people said."""
