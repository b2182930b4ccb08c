"""Plain text out of Markdown as models write it; what is no Markdown stays: `3*4=12`, `a_b`, `C#`, `[1]`, `a | b`.

A text may be a piece that was cut out of the middle of Markdown, so marks at the edge of a word count without their
partner. All steps look at each character a bounded number of times.
"""

import html
import re

from fleet.core.text.emphasis import strip_marks
from fleet.core.text.markdown_links import strip_links

_URL = r"(?:https?://|www\.)[!-;=?-Z\\^-z|~]+"
_CJK = re.compile(r"[\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef]")

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_ADDRESS = re.compile(rf"<?({_URL})>?")
_TAG = re.compile(
    r"(?<![A-Za-z0-9])<[A-Za-z][A-Za-z0-9:-]{0,20}(?:\s[^<>]{0,200})?/?>|</[A-Za-z][A-Za-z0-9:-]{0,20}\s{0,5}>"
    r"|<(?:b|i|u|s|p|br|hr|em|strong|code|pre|span|div|ul|ol|li|table|thead|tbody|tr|td|th|h[1-6]|sub|sup|small|del|ins"
    r"|mark|a|img)\s{0,5}/?>",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ENDLESS = re.compile(r"&#[0-9]{8,};?")
_TASK = re.compile(r"(?:[-*+]\s+)?\[[ xX]\]\s")
_LEAD = re.compile(r"(?:>\s?)*(?:(#{2,6}\s*|#\s+)|[-*+•●▪◦‣·]\s+)?")
_AFTER_HOST = re.compile(r"[/?#:]")
_LEAST_RULE = 3


def strip_markdown(text: str) -> str:
    """Return the text without Markdown: links become their text, addresses their host, code blocks nothing."""
    text = strip_links(_CODE.sub(" ", text))
    text = _ADDRESS.sub(lambda found: _host(found[1]), text)
    text = _ENTITY.sub(lambda found: html.unescape(found[0]), _ENDLESS.sub("", _TAG.sub(" ", text)))
    return strip_marks("\n".join(map(_strip_line, text.split("\n"))))


def _host(url: str) -> str:
    """Return an address as a person would say it, with the marks of the sentence that follow it."""
    address = url.rstrip(".,;:!?)'\"*_")
    host = address.partition("://")[2] or address
    return _AFTER_HOST.split(host, maxsplit=1)[0].removeprefix("www.") + url[len(address) :]


def _strip_line(line: str) -> str:
    """Return a line without what makes it a heading, an item, a quote, a rule or a row of a table."""
    line = line.strip()
    marks = set(line)
    if "|" in marks and (line[0] == "|" or line[-1] == "|"):
        return "" if marks <= set("|:- \t") else _cells(line)
    if marks <= set("-*_= \t") and sum(not char.isspace() for char in line) >= _LEAST_RULE:
        return ""
    if found := _TASK.match(line):
        line = line[found.end() :]
    lead = _LEAD.match(line)
    rest = line[lead.end() :] if lead else line
    return _without_closing(rest) if lead and lead[1] else rest


def _without_closing(heading: str) -> str:
    """Return a heading without the `#` that may close it."""
    plain = heading.rstrip("#")
    return plain if plain[-1:].isspace() else heading


def _cells(row: str) -> str:
    comma = "，" if _CJK.search(row) else ", "
    return comma.join(cell for part in row.split("|") if (cell := part.strip()))
