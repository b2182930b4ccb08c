"""What a call of a tool can do, and whether the model may call it: at once, after the user's yes, or never.

Whoever sets nothing has `ToolPolicy()`, which allows every tool that the model may see. Tools for users only
(`ToolSpec.user_only`) never reach the model, whatever the policy says. The risks of tools are data (`tool_risks.toml`).
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

Risk = Literal["read", "act", "dangerous"]
"""`read` changes nothing; `act` changes what a user can change back; `dangerous` does more, or looks."""
Decision = Literal["allow", "ask", "deny"]
"""`ask`: the call waits until the user has said yes (`fleet.core.asking`)."""
ToolSource = Literal["device", "program", "server"]
"""Whose tool: of a device's firmware; of a registrar or client of the gateway; of the server."""

ALSO: Final[Mapping[str, str]] = {"list_reminders": "list_reminder"}
"""Another name of a server's tool, which patterns fit too: `*_reminder` means all tools of reminders."""
MOST_RULES: Final = 64
LONGEST_PATTERN: Final = 256

_RISKS: Final[Mapping[str, Mapping[str, list[str]]]] = tomllib.loads(
    Path(__file__).with_name("tool_risks.toml").read_text(encoding="utf-8")
)
_ORDER: Final[tuple[Risk, ...]] = ("dangerous", "read", "act")


@dataclass(frozen=True, slots=True)
class ToolRule:
    """What is decided about some tools."""

    decision: Decision
    tool: str = "*"
    """Pattern of their names as the device or the server announces them; `*` stands for any text, `?` for a character.
    At most `LONGEST_PATTERN` characters."""
    risk: Risk | None = None
    """Only tools of this risk; None for all."""


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """Which tools the model may call; the first rule that fits a tool counts. At most `MOST_RULES` rules."""

    rules: tuple[ToolRule, ...] = ()
    otherwise: Decision = "allow"
    """For tools that no rule fits."""

    def decide(self, tool: str, source: ToolSource) -> Decision:
        """Return the decision about a tool, by the name under which it was announced."""
        if not self.rules:
            return self.otherwise
        risk, names = risk_of(tool, source), {tool}
        if source == "server" and tool in ALSO:
            names.add(ALSO[tool])
        fitting = (
            one for one in self.rules if one.risk in (None, risk) and any(fnmatchcase(name, one.tool) for name in names)
        )
        return next((one.decision for one in fitting), self.otherwise)

    def without_dangerous(self) -> "ToolPolicy":
        """Return the same policy, but with all dangerous tools denied."""
        return ToolPolicy((ToolRule("deny", risk="dangerous"), *self.rules), self.otherwise)


@lru_cache(maxsize=64)
def read_policy(text: str) -> ToolPolicy:
    """Return the policy of a text: rules such as `ask dangerous` or `deny self.camera.*`, with commas between.

    Raises:
        ValueError: A rule has another form.
    """
    return ToolPolicy(tuple(_read_rule(rule) for rule in text.split(",") if rule.strip()))


def _read_rule(rule: str) -> ToolRule:
    decided: Mapping[str, Decision] = {"allow": "allow", "ask": "ask", "deny": "deny"}
    decision, _, target = rule.strip().partition(" ")
    target = target.strip()
    if decision not in decided or len(target.split()) != 1:
        raise ValueError(f"{rule.strip()!r} is not allow, ask or deny, a space, and a risk or a tool's name")
    risk = next((one for one in _ORDER if one == target), None)
    return ToolRule(decided[decision], risk=risk) if risk else ToolRule(decided[decision], target)


def risk_of(tool: str, source: ToolSource) -> Risk:
    """Return what a call of a tool can do."""
    known = _RISKS[source]
    for risk in _ORDER:
        if any(fnmatchcase(tool, pattern) for pattern in known[risk]):
            return risk
    unknown: Mapping[str, Risk] = {"act": "act", "dangerous": "dangerous"}
    return unknown[str(known["unknown"])]
