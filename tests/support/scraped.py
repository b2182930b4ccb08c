"""What a role's port for metrics and health answers."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from http.client import HTTPConnection

from prometheus_client.parser import text_string_to_metric_families

from tests.support.ports import LOOPBACK

Sample = tuple[str, dict[str, str], float]


class Scraped:
    """The samples of one scrape, or of several."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = list(samples)

    @property
    def samples(self) -> tuple[Sample, ...]:
        return tuple(self._samples)

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of all samples of a name that have these labels; 0 without any."""
        return sum(value for found, has, value in self._samples if found == name and labels.items() <= has.items())

    def names(self) -> set[str]:
        return {name for name, _, _ in self._samples}

    def labels(self) -> set[tuple[str, str, str]]:
        """Return every label that a sample of ours has: its metric, name and value."""
        return {
            (name, label, value)
            for name, labels, _ in self._samples
            for label, value in labels.items()
            if name.startswith("fleet_") and label != "le"
        }

    def buckets(self, name: str, **labels: str) -> list[tuple[float, float]]:
        """Return a histogram's bounds, rising, each with how many values are up to it."""
        found: dict[float, float] = defaultdict(float)
        for sample, has, value in self._samples:
            if sample == f"{name}_bucket" and labels.items() <= has.items():
                found[float(has["le"])] += value
        return sorted(found.items())

    def mean(self, name: str, **labels: str) -> float:
        """Return the mean of a histogram; nan while it is empty."""
        count = self.value(f"{name}_count", **labels)
        return self.value(f"{name}_sum", **labels) / count if count else float("nan")


def together(parts: Iterable[Scraped]) -> Scraped:
    """Return several scrapes as one."""
    return Scraped(sample for part in parts for sample in part.samples)


def read(text: str) -> Scraped:
    """Read Prometheus's text format."""
    return Scraped(
        (sample.name, dict(sample.labels), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    )


def ask(port: int, path: str, method: str = "GET") -> tuple[int, Mapping[str, str], bytes]:
    """Return status, headers and body of an answer."""
    connection = HTTPConnection(LOOPBACK, port, timeout=240)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def scrape(port: int) -> Scraped:
    status, headers, body = ask(port, "/metrics")
    assert status == 200, (status, body)
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return read(body.decode())


def ready(port: int) -> bool:
    """Return whether a role says that it is; one that does not answer yet is not."""
    try:
        return ask(port, "/readyz")[0] == 200
    except OSError:
        return False
