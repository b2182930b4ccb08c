"""The reference of all settings, docs/reference/settings.md."""

from collections.abc import Iterator

from fleet.ground.settings.fields import EVERY
from fleet.ground.settings.reference import DOCUMENTED, Entry, Group, for_up, groups

_HIDDEN = {"value": "secret", "part": "may hold a secret", "file": "its content is secret"}

_INTRODUCTION = """\
# Settings

Made from the code by `fleet settings --format markdown`; do not edit. `fleet settings` shows the same with the values
of now, `fleet settings WORD` only what has the word in it, `--role edge` what a role reads, `--changed` what is not
at its default.

- **Where**: environment variables, or a TOML file that `FLEET_CONFIG` names. In the file a setting has its variable's
  name in lower case without `fleet_`: `shards = 16`, `llm_model = "…"`. The environment wins over the file, an option
  of the command over both. All is read at start; what is followed later says so.
- **Mistakes**: a value that is not allowed, and a `FLEET_…` variable or a line of the file that is no setting, end
  the process with exit code 2. The message names the variable, its value unless it is secret, and what is allowed.
- **Read by**: the role. `fleet up` is all of them in one process and reads every setting but {up}. Commands for
  operators read what they need to reach the system: `FLEET_REDIS_URL`, `FLEET_MQTT_URL`, `FLEET_KEYS…`,
  `FLEET_SHARDS`, `FLEET_TLS_CA`, `FLEET_DATA_DIR`; `fleet doctor` reads what it examines, so run it with the roles'
  settings.
- **Equal**: all processes that read it must have one value, or they contradict each other. An address may be written
  in another way if it leads to the same place, and a file may be a copy. Processes of one role should have equal
  settings throughout: only the edges' own addresses, and ports on one machine, differ.
- **Secret**: `fleet settings` and messages about wrong values do not show it. Of addresses they mask passwords and
  queries. Files with secrets must be readable for fleet only.
- What only Compose and Helm read is in `deploy/.env.example` and the chart's README.
"""

_DOCUMENT = """\
## The document's variables

Section 8 of the LLM Gateway API's document ([protocol/gateway.md](../protocol/gateway.md)) has these, with these
defaults. fleet's are the same in the gateway, but for `LLM_BASE_URL` (the document's is an address in its authors'
own network) and `LLM_MODEL` (the document's is taken where the endpoint lists it or lists nothing).

| variable | parameter | document's default | fleet's default |
|---|---|---|---|
"""


def write_reference() -> str:
    """Return the document."""
    parts = [_INTRODUCTION.format(up=for_up()), *(_section(group) for group in groups())]
    return "\n".join([*parts, _DOCUMENT + "".join(_documented())])


def _section(group: Group) -> str:
    head = "| setting | allowed | default | read by | meaning |\n|---|---|---|---|---|\n"
    return f"## {group.title}\n\n{group.purpose}\n\n{head}" + "".join(
        f"| {' | '.join(_cells(entry))} |\n" for entry in group.entries
    )


def _cells(entry: Entry) -> Iterator[str]:
    marks = [f"also `{entry.also}`"] if entry.also else []
    marks += ["equal"] if entry.same else []
    marks += [_HIDDEN[entry.hidden]] if entry.hidden else []
    yield "<br>".join([f"`{entry.variable}`", *marks])
    yield entry.allowed
    yield entry.without or f"`{entry.default}`"
    yield "all" if set(entry.readers) == set(EVERY) else ", ".join(entry.readers)
    yield entry.meaning


def _documented() -> Iterator[str]:
    known = {entry.variable: entry for group in groups() for entry in group.entries}
    for variable, (parameter, default) in DOCUMENTED.items():
        ours = known[variable].without or f"`{known[variable].default}`"
        yield f"| `{variable}` | `{parameter}` | `{default}` | {ours} |\n"
