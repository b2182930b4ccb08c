"""How wrong a transcript is: word error rate for English, character error rate for Chinese."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from fleet.adapters.speech.hanzi_numbers import spell_numbers

_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_TEENS = ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def error_rate(pairs: Iterable[tuple[str, str]], language: str) -> float:
    """Return the rate over (said, understood) pairs; case, punctuation and the spelling of numbers do not count."""
    compared = [(units(said, language), units(understood, language)) for said, understood in pairs]
    return sum(distance(said, understood) for said, understood in compared) / sum(len(said) for said, _ in compared)


def units(text: str, language: str) -> list[str]:
    """Return what is counted: the words of English, the characters of Chinese."""
    text = unicodedata.normalize("NFKC", text).lower()
    if language == "zh":
        return list(re.sub(r"[\W_]", "", spell_numbers(text)))
    text = re.sub(r"\d+", lambda found: f" {_words(int(found[0]))} ", text.replace("%", " percent "))
    return re.sub(r"[^\w\s']|_", " ", text).split()


def distance(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the least number of insertions, deletions and replacements."""
    row = list(range(len(right) + 1))
    for count, one in enumerate(left, 1):
        before, row[0] = row[0], count
        for place, other in enumerate(right, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (one != other))
    return row[-1]


def _words(number: int) -> str:
    if number < 20:
        return [*_ONES, *_TEENS][number]
    if number < 100:
        return f"{_TENS[number // 10 - 2]} {_ONES[number % 10] if number % 10 else ''}"
    return str(number)
