"""Lays out the documents for the site: `python docs/site/stage.py FOLDER`.

The site has the pages at the paths that they have in the repository, so links between them hold on both. What is
different there is written into the copies: links to other files of the repository lead to its code host, and lists are
indented as the Markdown of the site wants it.
"""

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOST = str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Homepage"])
ADDITIONS = ("README.md", "README.zh-CN.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "mosquitto/README.md")
"""Pages outside `docs`, beside those of `deploy`."""

_SHOWN = {".md", ".svg", ".png", ".webp"}
_LINK = re.compile(r"(?<=\]\()([^()\s:#]+)(#[^()\s]*)?(?=\))")
_FENCE = re.compile(r" *```")
_BREAK = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uff60])\n *(?=[\u3000-\u9fff])")
"""Between two lines of Chinese, where a browser would show a space."""
_ITEM = re.compile(r"([-*]|\d+\.) ")
_TITLE = re.compile(r"^# +(.+)$", re.MULTILINE)
_SECTION = re.compile(r"^## +(.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def stage(folder: Path) -> None:
    """Write the configuration, the theme's changes and all pages into a folder."""
    own = ROOT / "docs/site"
    shutil.copytree(own / "overrides", folder / "overrides", dirs_exist_ok=True)
    files = find_files()
    for file in files:
        copy = folder / "pages" / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            copy.write_text(rewrite((ROOT / file).read_text(encoding="utf-8"), file, files), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / file, copy)
    settings = (own / "zensical.toml").read_text(encoding="utf-8")
    written = settings.replace("[project]\n", f"[project]\nnav = {_toml(navigation(files))}\n", 1)
    (folder / "zensical.toml").write_text(written, encoding="utf-8")


def find_files() -> set[Path]:
    """Return what the site shows, relative to the root of the repository."""
    found = {path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*") if path.suffix in _SHOWN}
    return found | {path.relative_to(ROOT) for path in (ROOT / "deploy").rglob("README.md")} | set(map(Path, ADDITIONS))


def rewrite(text: str, file: Path, files: set[Path]) -> str:
    """Return a page as the site wants it.

    Args:
        text: The page.
        file: Its path in the repository.
        files: All that the site shows.
    """

    def lead(link: re.Match[str]) -> str:
        target = (ROOT / file.parent / link[1]).resolve()
        if not target.is_relative_to(ROOT) or target.relative_to(ROOT) in files:
            return link[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"{HOST}/{kind}/main/{target.relative_to(ROOT)}{link[2] or ''}"

    return _BREAK.sub("", _indent(_LINK.sub(lead, text)))


def navigation(files: set[Path]) -> list[dict[str, object]]:
    """Return the site's tabs: the sections of the indexes in both languages, and what stands in none of them."""
    tabs: list[tuple[str, list[Path]]] = [("Home", [Path("README.md"), Path("docs/README.md"), Path("CHANGELOG.md")])]
    tabs += [(title.removesuffix(" it"), found) for title, found in _sections(Path("docs/README.md"))]
    tabs += [("中文", [Path("README.zh-CN.md"), Path("docs/zh/README.md"), *_listed(Path("docs/zh/README.md"))])]
    tabs += [("Decisions", sorted(file for file in files if file.parent.name == "adr"))]
    shown: set[Path] = set()
    entries: list[dict[str, object]] = []
    for title, found in tabs:
        new = [file for file in dict.fromkeys(found) if file in files and file.suffix == ".md" and file not in shown]
        shown.update(new)
        entries.append({title: [_entry(file) for file in new]})
    rest = sorted(file for file in files if file.suffix == ".md" and file not in shown)
    return [*entries, {"More": [_entry(file) for file in rest]}] if rest else entries


def _sections(index: Path) -> list[tuple[str, list[Path]]]:
    text = (ROOT / index).read_text(encoding="utf-8")
    return [(title, _targets(body, index)) for title, body in _SECTION.findall(text)]


def _listed(index: Path) -> list[Path]:
    return [file for file in _targets((ROOT / index).read_text(encoding="utf-8"), index) if file.parent == index.parent]


def _targets(text: str, index: Path) -> list[Path]:
    links = ((ROOT / index.parent / link[1]).resolve() for link in _LINK.finditer(text))
    return [target.relative_to(ROOT) for target in links if target.is_relative_to(ROOT)]


def _entry(file: Path) -> dict[str, object]:
    title = _TITLE.search((ROOT / file).read_text(encoding="utf-8"))
    return {title[1].replace("`", "") if title else file.stem: file.as_posix()}


def _indent(text: str) -> str:
    """Indent what belongs to an item of a list by four columns a level, in place of the width of its mark."""
    lines: list[str] = []
    fenced, more = False, 0
    for line in text.splitlines():
        item = None if fenced else _ITEM.match(line)
        if item:
            more = 1 if item[1][-1] == "." else 2
        elif line and not line.startswith("  ") and not (fenced and more):
            more = 0
        lines.append(" " * more + line if line.startswith("  ") else line)
        if _FENCE.match(line):
            fenced = not fenced
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """Return nested lists, tables and texts as one line of TOML, whose texts are those of JSON."""
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)} = {_toml(one)}" for key, one in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
