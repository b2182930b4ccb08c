"""Cutting a streamed text into pieces for speech, as early as possible.

A decision at one character reads only the text before it and a bounded stretch after it, and waits for that stretch.
So the pieces do not depend on how the text was chunked.
"""

import re
import unicodedata

LONGEST = 120
"""Most characters in a piece; without any mark it is cut at white space, or in the middle of a word."""
LONGEST_CODE = 2000
"""Most characters in a piece with a block of code, which is kept whole so that speech can leave it out."""

_EARLY_WEIGHT = 12
_CJK_WEIGHT = 3
_FENCE = "```"
_CHUNK = 4000
_WIDE_ENDS = "。！？…｡"
_NARROW_ENDS = ".!?"
_WIDE_CLAUSE = "，、；："
_NARROW_CLAUSE = ",;:"
_CLOSERS = "”’\"')）】」』》〉]}*_~"
_AFTER_END = frozenset(_WIDE_ENDS + _NARROW_ENDS + _CLOSERS)
_AFTER_CLAUSE = frozenset(_CLOSERS)
_JOINING = frozenset(",;:-/\\@&=%+#，、；：|<[")
_MARKS = re.compile(f"[`\n{_WIDE_ENDS}{_NARROW_ENDS}{_WIDE_CLAUSE}{_NARROW_CLAUSE}]")
"""What can end a piece; all other characters are passed over at once."""
_TICK = re.compile("`")
_WORD = re.compile(r"((?:[^\W\d_]\.)*[^\W\d_]+|\d+)$")
_CLAUSE_END = re.compile(rf"[{_WIDE_CLAUSE}]|[{_NARROW_CLAUSE}](?=\s)")
_LIST_LEAD = re.compile(r"(?:^|\n|[:：.!?。！？]\s+)[\s*_>-]*$")
_LONGEST_GLUED = 32
"""Code points that may make one character: a family has eleven; longer heaps of accents are cut anywhere."""
_GLUED = re.compile("[\u200d\ufe0f\u20e3\U0001f3fb-\U0001f3ff]")

_BEFORE_NAME = frozenset(
    {"mr", "mrs", "ms", "dr", "prof", "st", "mt", "gen", "sen", "rev", "capt", "vs", "cf", "approx"}
)
_BEFORE_NUMBER = frozenset({"no", "nr", "fig", "vol", "ch", "sec", "pp", "p", "ca"})
_PERHAPS_LAST = frozenset({"a.m", "p.m", "etc", "inc", "ltd", "co", "jr", "sr"})


class SentenceSplitter:
    """Cuts one streamed text after the other; `flush` ends a text.

    The first piece of a text ends at its first clause of at least four Chinese or about twelve Latin characters, so
    that speech can begin early; every other one is a sentence or a line.
    """

    def __init__(self) -> None:
        self._reset()

    def feed(self, text: str) -> list[str]:
        """Take more of the text and return the pieces that are now certain, without white space around them."""
        pieces: list[str] = []
        for start in range(0, len(text), _CHUNK):  # each piece copies the rest, which must stay short
            self._text += text[start : start + _CHUNK]
            pieces += self._pieces(final=False)
        return pieces

    def flush(self) -> list[str]:
        """End the text and return the rest of it."""
        pieces = self._pieces(final=True)
        self._reset()
        return pieces

    def _reset(self) -> None:
        self._text = ""
        self._at = 0
        self._code = False
        self._first = True

    def _pieces(self, *, final: bool) -> list[str]:
        pieces: list[str] = []
        while True:
            if self._at == 0:
                self._text = self._text.lstrip()
            end = self._end(final)
            if end is None:
                return pieces
            piece, self._text, self._at = self._text[:end].rstrip(), self._text[end:], 0
            if self._code and self._text:
                # The rest of a block that was too long for one piece is code too.
                self._text, self._at = _FENCE + self._text, len(_FENCE)
            self._first = self._first and not any(char.isalnum() for char in piece)
            pieces.append(piece)

    def _end(self, final: bool) -> int | None:
        """Return where the next piece ends, or None when that is not certain yet."""
        while True:
            limit = LONGEST_CODE if self._code else LONGEST
            found = (_TICK if self._code else _MARKS).search(self._text, self._at, limit)
            if found is None:
                break
            self._at = found.start()
            end = self._check(final)
            if end is None:
                return None
            if end:
                return end
            self._at += 1
        self._at = max(self._at, min(len(self._text), limit))
        if len(self._text) > limit:
            return limit if self._code else _forced(self._text)
        return len(self._text) if final and self._text else None

    def _check(self, final: bool) -> int | None:
        """Return the end of the piece when the current character ends it, 0 when not, None when not certain yet."""
        if self._text[self._at] == "`":
            return self._check_fence(final)
        if self._code:
            return 0
        return _mark(self._text, self._at, final, early=self._first)

    def _check_fence(self, final: bool) -> int | None:
        ahead = self._text[self._at : self._at + len(_FENCE)]
        if ahead == _FENCE:
            self._at += len(_FENCE) - 1
            self._code = not self._code
            return 0 if self._code else self._at + 1
        return 0 if final or len(ahead) == len(_FENCE) or set(ahead) != {"`"} else None


def _mark(text: str, at: int, final: bool, *, early: bool) -> int | None:
    char = text[at]
    if char == "\n":
        return at + 1
    if char in _WIDE_ENDS:
        return _run(text, at + 1, _AFTER_END, final)
    if char in _NARROW_ENDS:
        return _narrow_end(text, at, final)
    if early and char in _WIDE_CLAUSE + _NARROW_CLAUSE and _weight(text[:at]) >= _EARLY_WEIGHT:
        return _clause(text, at, final)
    return 0


def _narrow_end(text: str, at: int, final: bool) -> int | None:
    end = _run(text, at + 1, _AFTER_END, final)
    if end is None or end >= len(text) or end >= LONGEST:
        return end
    if _joins(text[end]):
        return 0
    if text[at] == "." and text[at + 1] not in _NARROW_ENDS:
        return _after_word(text, at, end, final)
    return end


def _after_word(text: str, dot: int, end: int, final: bool) -> int | None:
    """Decide about a single dot that white space or a wide character follows: end of a sentence, or of a short form."""
    found = _WORD.search(text, max(0, dot - 30), dot)
    word = found[1] if found else ""
    if word.isdigit():
        listed = len(word) < 3 and _LIST_LEAD.search(text, 0, dot - len(word))
        return 0 if listed and text[end] != "\n" else end
    short = word.casefold()
    if short in _BEFORE_NAME or (len(word) == 1 and word.isupper() and word != "I"):
        return 0
    if short not in _BEFORE_NUMBER | _PERHAPS_LAST and "." not in word:
        return end
    follower = _follower(text, end)
    if follower == "" and not final and len(text) <= LONGEST:
        return None
    return 0 if _continues(short, follower) else end


def _continues(short: str, follower: str) -> bool:
    if follower in ("", "\n"):
        return False
    if short in _BEFORE_NUMBER:
        return follower.isdigit()
    return follower.islower() or follower.isdigit() or short not in _PERHAPS_LAST


def _follower(text: str, at: int) -> str:
    """Return the next line end or character that is no white space within the longest piece, or nothing."""
    return next((char for char in text[at : LONGEST + 1] if char == "\n" or not char.isspace()), "")


def _clause(text: str, at: int, final: bool) -> int | None:
    end = _run(text, at + 1, _AFTER_CLAUSE, final)
    if end is None or end >= len(text) or end >= LONGEST:
        return end
    if text[at] in _WIDE_CLAUSE:
        return 0 if text[at - 1].isdigit() and text[end].isdigit() else end
    return 0 if _joins(text[end]) else end


def _run(text: str, at: int, members: frozenset[str], final: bool) -> int | None:
    """Return the first position from `at` whose character is not among the members, None when it has not come yet."""
    while at < len(text) and at < LONGEST and text[at] in members:
        at += 1
    return at if final or at < len(text) or at >= LONGEST else None


def _joins(char: str) -> bool:
    """Say whether a character directly after a narrow mark shows that the mark is inside: 3.14, 7:30, a URL."""
    return char in _JOINING or (char.isalnum() and not _is_cjk(char))


def _is_cjk(char: str) -> bool:
    code = ord(char)
    return (
        0x2E80 <= code <= 0xD7FF or 0xF900 <= code <= 0xFAFF or 0xFF00 <= code <= 0xFFEF or 0x20000 <= code <= 0x3FFFF
    )


def _weight(text: str) -> int:
    return sum(_CJK_WEIGHT if _is_cjk(char) else 1 for char in text if char.isalnum())


def _forced(text: str) -> int:
    """Return where to cut a text without marks: after its last clause, at its last white space, or anywhere."""
    head = text[:LONGEST]
    clauses = [found.end() for found in _CLAUSE_END.finditer(text, 0, LONGEST)]
    spaces = [at for at, char in enumerate(head) if char.isspace()]
    for places in (clauses, spaces):
        if places and places[-1] >= LONGEST // 3:
            return places[-1]
    whole = (end for end in range(LONGEST, LONGEST - _LONGEST_GLUED, -1) if not _is_glued(text, end))
    return next(whole, LONGEST)


def _is_glued(text: str, at: int) -> bool:
    """Say whether the character at a place belongs to the one before it."""
    return bool(_GLUED.match(text[at]) or text[at - 1] == "\u200d" or unicodedata.combining(text[at]))
