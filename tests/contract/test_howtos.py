"""The code that the guides for developers show is code that works."""

import re
import textwrap
from typing import Any, Final

from fleet.ground.metrics import counter, gauge, histogram
from fleet.ground.metrics.definition import METRICS
from fleet.ground.settings.fields import SettingGroup, setting
from tests.support.documents import ROOT

HOWTO = ROOT / "docs" / "howto"


def shown(name: str) -> str:
    """Return the Python that a guide shows."""
    text = (HOWTO / name).read_text(encoding="utf-8")
    [code] = re.findall(r"^ *```python\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return textwrap.dedent(code)


def test_the_setting_of_the_guide_can_be_declared_and_is_the_servers() -> None:
    code = textwrap.indent(shown("add-a-setting.md"), "    ")
    names: dict[str, Any] = {"SettingGroup": SettingGroup, "setting": setting}
    exec(f"class ShownGroup(SettingGroup):\n{code}", names)
    [field] = names["ShownGroup"].model_fields.values()
    assert field.json_schema_extra["roles"]
    assert code in (ROOT / "fleet/ground/settings/conversation.py").read_text(encoding="utf-8")


def test_the_metric_of_the_guide_can_be_declared_and_counts() -> None:
    names: dict[str, Any] = {
        "Final": Final,
        "CounterMetric": counter.CounterMetric,
        "GaugeMetric": gauge.GaugeMetric,
        "HistogramMetric": histogram.HistogramMetric,
    }
    before = set(METRICS)
    try:
        exec(shown("add-a-metric.md"), names)
        names["stalls"].add("uplink")
        assert dict(names["stalls"].read()) == {("uplink",): 1}
    finally:
        for name in set(METRICS) - before:
            del METRICS[name]
