"""The console has words for every result of the doctor about a device, and says what to do about each problem."""

import re
from pathlib import Path

from fleet.roles.control import doctor
from tests.support.console_places import catalogue

FOLDER = Path(*doctor.__path__)
MADE = re.compile(r"\b(ok|skipped|warning|problem)\(\s*(?:\"device\.([a-z]+)\"|_CHECK).*?case=\"([a-z-]+)\"", re.DOTALL)
_CALL = re.compile(r"\b(?:ok|skipped|warning|problem)\(")


def test_every_result_has_words_and_every_problem_an_advice() -> None:
    sources = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))]
    made = [found for text in sources for found in MADE.findall(text)]
    assert len(made) == sum(len(_CALL.findall(text)) for text in sources), "a finding without a case"
    texts = catalogue("en")
    for verdict, check, case in made:
        key = f"finding.{check or 'firmware'}.{case}"
        assert key in texts, key
        assert (f"{key}-do" in texts) == (verdict in ("problem", "warning")), key
