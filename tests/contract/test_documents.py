"""The documents name what exists: every link leads somewhere, every command and every setting is a real one."""

import ast
import re
import subprocess
from urllib.parse import unquote

import pytest
from typer import Exit, Typer
from typer._click.core import Context
from typer._click.exceptions import MissingParameter, NoArgsIsHelpError, UsageError
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from fleet.cli import add_operator_commands, add_workbench_commands, app
from fleet.workbench.cluster.__main__ import app as cluster
from tests.benchmarks.__main__ import app as bench
from tests.support.deployed_settings import PREFIXES, unknown
from tests.support.documents import ROOT, Document, documents
from tests.support.every import for_every
from tests.support.followed_guides import HEADINGS
from tests.support.guide import blocks

DOCUMENTS = documents()
COMPOSE_ONLY = {"FLEET_IMAGE", "FLEET_SPEECH_IMAGE", "FLEET_CONFIG"}
"""Variables of deploy/compose.yaml, and the one that names the file with the settings."""
NO_SETTINGS = {"LLM_ERROR"}
"""A code of the gateway's errors, which looks like one."""
NOT_OURS = {"CHANGELOG.md"}
"""Names commands in short, several in one."""


LONGEST_LINE = 120
LONGEST_CELL = 200
"""More than three lines of a column of a table that has three: then it is a paragraph, and belongs below the table."""
LONGEST_HELP = 160
"""Of an option, whose help a terminal shows, too: two lines beside its name."""
PROOFS = "tests/"
"""How cells of requirements begin that list their tests."""


TYPED = {"scripts/bench": bench, "scripts/cluster": cluster}
"""Scripts that hand all options to a program, which reads them as `fleet` does."""


@pytest.fixture(scope="module")
def fleet() -> TyperGroup:
    if not any(group.name == "devices" for group in app.registered_groups):
        add_operator_commands()
        add_workbench_commands()
    return group(app)


def group(program: Typer) -> TyperGroup:
    command = get_command(program)
    assert isinstance(command, TyperGroup)
    return command


def parse(command: TyperGroup | TyperCommand, words: list[str], *, parent: Context | None = None) -> None:
    """Read a command line as the program does, and run nothing.

    Raises:
        UsageError: It is none.
    """
    name = "fleet" if parent is None else str(command.name)
    with command.make_context(name, list(words), parent=parent) as context:
        if isinstance(command, TyperGroup):
            rest = [*context._protected_args, *context.args]
            _, chosen, left = command.resolve_command(context, rest)
            assert isinstance(chosen, TyperGroup | TyperCommand)
            parse(chosen, left, parent=context)


@for_every("document", DOCUMENTS)
def test_every_link_leads_somewhere(document: Document) -> None:
    for link in document.links():
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = unquote(link).partition("#")
        target = (document.path.parent / file).resolve() if file else document.path
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in Document(target).anchors(), link


@for_every("document", DOCUMENTS)
def test_every_command_in_a_code_block_is_one(document: Document, fleet: TyperGroup) -> None:
    for words in document.commands():
        try:
            parse(fleet, words)
        except (Exit, NoArgsIsHelpError):
            assert words in ([], ["--help"]), words
        except UsageError as error:
            pytest.fail(f"fleet {' '.join(words)}: {error.format_message()}")


@for_every("document", DOCUMENTS)
def test_a_shell_takes_every_command(document: Document) -> None:
    for block in blocks(document):
        several = [step.typed for step in block.steps if "\n" in step.typed]
        for typed in (*several, "\n".join(step.typed for step in block.steps)):
            done = subprocess.run(["bash", "-n"], input=typed, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, ""), typed


@for_every("guide", HEADINGS)
def test_who_follows_a_guide_knows_its_blocks(guide: str) -> None:
    assert tuple(block.heading for block in blocks(Document(ROOT / guide))) == HEADINGS[guide]


@for_every("document", DOCUMENTS)
def test_every_command_in_a_sentence_is_one(document: Document, fleet: TyperGroup) -> None:
    for span in document.spans():
        if not span.startswith("fleet ") or str(document) in NOT_OURS or re.search(r"[…|=;<]", span):
            continue
        try:
            parse(fleet, span.split()[1:])
        except (MissingParameter, NoArgsIsHelpError, Exit):
            pass  # what it is done to goes without saying
        except UsageError as error:
            pytest.fail(f"{span}: {error.format_message()}")


@for_every("document", DOCUMENTS)
def test_every_setting_that_is_named_is_one(document: Document) -> None:
    named = set(re.findall(rf"(?<![\w$])(?:{'|'.join(PREFIXES)})[A-Z_]*[A-Z](?![\w…*])", document.text, re.ASCII))
    assert unknown(named) - COMPOSE_ONLY - NO_SETTINGS == set()


@for_every("document", DOCUMENTS)
def test_every_path_that_is_named_is_there(document: Document) -> None:
    scripts = set(re.findall(r"(?<![\w/.])scripts/[a-z_-]+", document.text, re.ASCII))
    assert [name for name in sorted(document.paths() | scripts) if not (ROOT / name).exists()] == []


def members(classes: set[str]) -> dict[str, set[str]]:
    """Return classes of the package with all names that stand in them."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "fleet").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if classes & set(re.findall(r"^class (\w+)", text, re.MULTILINE)):
            for node in ast.parse(text).body:
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, set()).update(re.findall(r"\w+", ast.unparse(node)))
    return found


def test_every_method_that_is_named_is_one() -> None:
    pattern = re.compile(r"(?<![\w.])([A-Z][a-z]\w*)\.(\w+)")
    named = {(str(one), *found) for one in DOCUMENTS for span in one.spans() for found in pattern.findall(span)}
    known = members({owner for _, owner, _ in named})
    assert sorted(one for one in named if one[2] not in known.get(one[1], ())) == []
    assert len(named) > 50


@for_every("document", DOCUMENTS)
def test_every_script_is_given_what_it_takes(document: Document) -> None:
    for script, words in document.scripts():
        if script in TYPED:
            try:
                parse(group(TYPED[script]), words)
            except NoArgsIsHelpError:
                assert words == []
            except UsageError as error:
                if str(document) in NOT_OURS:
                    continue
                pytest.fail(f"{script} {' '.join(words)}: {error.format_message()}")
        else:
            text = (ROOT / script).read_text(encoding="utf-8")
            unknown_options = [word for word in words if word.startswith("--") and not re.search(rf"{word}\b", text)]
            assert unknown_options == [], script


@for_every("document", DOCUMENTS)
def test_a_line_of_prose_fits_into_an_editor(document: Document) -> None:
    assert [line for line in document.prose_lines() if len(line) > LONGEST_LINE] == []


@for_every("document", DOCUMENTS)
def test_no_cell_of_a_table_is_a_paragraph(document: Document) -> None:
    longest = LONGEST_HELP if document.path.name == "commands.md" else LONGEST_CELL
    cells = [cell for cell in document.cells() if not cell.startswith(PROOFS)]
    assert [cell for cell in cells if len(cell) > longest] == []


def test_each_decision_has_a_number_of_its_own() -> None:
    names = sorted(path.name for path in (ROOT / "docs/adr").glob("*.md"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    for name in names:
        assert (ROOT / "docs/adr" / name).read_text(encoding="utf-8").startswith(f"# {int(name[:4])}. "), name


def test_nothing_was_overlooked() -> None:
    assert len(DOCUMENTS) > 30
    assert sum(len(document.links()) for document in DOCUMENTS) > 120
    assert sum(len(list(document.commands())) for document in DOCUMENTS) > 40
    assert sum(len(list(document.scripts())) for document in DOCUMENTS) > 40
    assert sum(len(document.paths()) for document in DOCUMENTS) > 20
