"""The house style that no linter holds us to: sizes of files, functions and classes, and the names of modules."""

import ast
import functools
import gc
import statistics
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.every import for_every

ROOT = Path(__file__).parent.parent / "fleet"
MODULES = sorted(ROOT.rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION = 300, 49
MOST_METHODS, MOST_ATTRIBUTES = 15, 12
TYPICAL_FUNCTION = 8
MOST_ROOMS = 12
FEWEST_WORDS = 4
"""Of the sentence that says what lives in a package."""
BAD_NAMES = {"utils", "util", "helpers", "helper", "manager", "handler", "base", "impl", "common", "misc"}

RETIRED = {
    *(
        "Letter",
        "Mailboxes",
        "Desk",
        "Order",
        "Ears",
        "Hearing",
        "Recorder",
        "Held",
        "Reorder",
        "Missed",
        "Floor",
        "Line",
    ),
    *("Farewell", "Standstill", "Holdings", "Shards", "Losses", "Orphans", "Sweeper", "Lanes", "Patience", "Record"),
    *("Waiters", "Receptionist", "Lobby", "Entrance", "Scribe", "Visit", "Peer", "Guarded", "Crowd", "Passage", "Side"),
    *("Stay", "Door", "Register", "Roster", "Dossier", "Whereabouts", "Words", "Herd"),
}

RETIRED_IN_NAMES = {
    *("tell", "tells", "told", "letter", "letters", "mail", "mails", "mailbox", "mailboxes", "lane", "lanes", "desk"),
    *("ear", "ears", "hear", "crowd", "crowded", "roster", "dossier", "whereabouts", "holdings", "herd", "breath"),
    *("bite", "bites", "farewell", "orphan", "orphans", "patience", "scribe", "census", "standing", "receptionist"),
}
"""Words that no module, function, method or attribute of a covered room contains; the glossary has the others."""
ROOMS_WITHOUT_RETIRED_WORDS = (
    "ground",
    "wire",
    "core",
    "adapters",
    "roles",
    "run",
    "operations",
    "workbench/cluster",
    "workbench/demo",
    "workbench/local_servers",
)
"""A room is added once its names are clean."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    """Keep the garbage collector from looking through millions of nodes, and forget them after the last test here."""
    gc.disable()
    yield
    nodes.cache_clear()
    tree.cache_clear()
    gc.enable()


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """Return what `ast.walk` finds; to walk through all files takes a second of a core."""
    return list(ast.walk(tree(path)))


def functions(path: Path) -> Iterator[Function]:
    return (node for node in nodes(path) if isinstance(node, Function))


def holds(path: Path, words: set[str]) -> bool:
    """Say whether a file has one of these words, wherever: most have none, and need not be parsed to know that."""
    text = path.read_text(encoding="utf-8")
    return any(word in text for word in words)


def called(call: ast.Call) -> str:
    """Return the name of what is called, with the name before its last dot."""
    if isinstance(call.func, ast.Attribute):
        of = call.func.value
        return f"{of.id}.{call.func.attr}" if isinstance(of, ast.Name) else ""
    return call.func.id if isinstance(call.func, ast.Name) else ""


def length(function: Function) -> int:
    """Count a function's lines without its docstring."""
    documented = ast.get_docstring(function, clean=False) is not None
    first = function.body[1 if documented and len(function.body) > 1 else 0]
    return (function.end_lineno or 0) - first.lineno + 1


@for_every("path", MODULES)
def test_module_has_a_good_size_and_name(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    assert not BAD_NAMES & set(path.stem.split("_"))
    for function in functions(path):
        lines = (function.end_lineno or 0) - function.lineno + 1
        assert lines <= LONGEST_FUNCTION, f"{function.name} has {lines} lines"


@for_every("path", MODULES)
def test_classes_are_small(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.ClassDef):
            methods = [child for child in node.body if isinstance(child, Function)]
            assert len(methods) <= MOST_METHODS, f"{node.name} has {len(methods)} methods"
            attributes = {
                child.attr
                for method in methods
                for child in ast.walk(method)
                if isinstance(child, ast.Attribute)
                and isinstance(child.ctx, ast.Store)
                and isinstance(child.value, ast.Name)
                and child.value.id == "self"
            }
            assert len(attributes) <= MOST_ATTRIBUTES, f"{node.name} has {len(attributes)} attributes"


def public_classes() -> Iterator[tuple[str, Path]]:
    rooms = [path for path in MODULES if path.relative_to(ROOT).parts[0] in ("core", "wire", "roles", "adapters")]
    for path in rooms:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, path.relative_to(ROOT)


def test_no_public_class_name_means_two_things() -> None:
    places: dict[str, list[Path]] = {}
    for name, path in public_classes():
        places.setdefault(name, []).append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_retired_words_do_not_come_back() -> None:
    """The glossary has the word that is used instead."""
    assert [(name, path) for name, path in public_classes() if name in RETIRED] == []


def defined_names(path: Path) -> Iterator[str]:
    """Yield the names of a module and of its functions, classes, attributes, parameters and variables."""
    yield path.stem
    for node in nodes(path):
        if isinstance(node, Function | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@for_every("room", ROOMS_WITHOUT_RETIRED_WORDS)
def test_no_name_holds_a_retired_word(room: str) -> None:
    paths = sorted((ROOT / room).rglob("*.py"))
    assert paths
    found = {
        (str(path.relative_to(ROOT)), name)
        for path in paths
        for name in defined_names(path)
        if RETIRED_IN_NAMES & set(name.lower().split("_"))
    }
    assert found == set()


def test_every_package_says_what_lives_there() -> None:
    packages = [path for path in MODULES if path.name == "__init__.py"]
    first_lines = {path: (ast.get_docstring(tree(path)) or "").partition("\n")[0] for path in packages}
    assert [path for path, line in first_lines.items() if len(line.split()) < FEWEST_WORDS] == []
    folders = {path.parent for path in MODULES}
    assert folders == {path.parent for path in packages}


def test_the_package_has_few_rooms() -> None:
    rooms = {path.relative_to(ROOT).parts[0] for path in MODULES} - {"__init__.py"}
    assert len(rooms) <= MOST_ROOMS, rooms


def test_a_new_module_needs_a_place_in_its_layers() -> None:
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))
    layers = [one for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    assert layers and [one["name"] for one in layers if not one.get("exhaustive")] == []


def test_the_typical_function_is_short() -> None:
    lengths = [length(function) for path in MODULES for function in functions(path)]
    assert statistics.median(lengths) <= TYPICAL_FUNCTION


def test_the_broad_except_stays_alone() -> None:
    broad = [
        str(path.relative_to(ROOT))
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")))
    ]
    # The others pass on what they catch: to the coroutine of a task, to the task, to who waits for a thread's work.
    assert set(broad) == {"ground/tasks.py", "ground/eager_tasks.py", "adapters/speech/fair_engine.py"}


def test_every_tcp_server_sends_at_once() -> None:
    """What `socket.create_server` returns holds short writes back: `fleet.adapters.net.listening` sees to that."""
    makers = [
        str(path.relative_to(ROOT))
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Call) and called(node) == "socket.create_server"
    ]
    assert makers == ["adapters/net/listening.py"]


@for_every("path", sorted(Path(__file__).parent.joinpath("unit").rglob("*.py")))
def test_no_unit_test_sleeps(path: Path) -> None:
    """Time passes by `tests.support.virtual_time.elapse`, which takes none; `asyncio.sleep(0)` only lets tasks run."""
    if not holds(path, {"sleep"}):
        return
    for node in nodes(path):
        if isinstance(node, ast.Call) and called(node) in ("asyncio.sleep", "time.sleep", "sleep"):
            assert ast.unparse(node.args[0]) == "0", f"line {node.lineno}"


@for_every("path", sorted(Path(__file__).parent.joinpath("unit").rglob("*.py")))
def test_no_unit_test_starts_a_server(path: Path) -> None:
    """A test that listens on a TCP port or runs another server belongs to tests/integration."""
    servers = {"start_server", "create_server", "HTTPServer", "run_openai_server", "stun_server", "ServerProcess"}
    if not holds(path, servers):
        return
    names = {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in nodes(path) if isinstance(node, ast.Name)}
    assert not names & servers


def test_no_helper_of_tests_hides_a_module_of_python() -> None:
    """Some run as programs of their own, and then find their neighbours before the standard library."""
    support = Path(__file__).parent / "support"
    assert not {path.stem for path in support.glob("*.py")} & sys.stdlib_module_names
