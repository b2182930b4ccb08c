"""`fleet health`: checks whether a role is ready, for health checks in images that have no HTTP client.

It imports only the standard library, because it runs every few seconds:
`python -m fleet.operations.health_command URL`.
"""

import json
import sys
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

READY, NOT_READY, MISUSED = 0, 1, 2
"""Exit codes."""

DEFAULT_URL = "http://127.0.0.1:9464/readyz"
LIMIT_SECONDS = 3.0
_LONGEST = 500


def probe(url: str, limit: float = LIMIT_SECONDS) -> tuple[bool, str]:
    """Return whether GET gives 200, and the answer in one line.

    Args:
        url: http://host:port/path.
        limit: Seconds for each step.

    Raises:
        ValueError: The URL has another form.
    """
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"{url} is not http://host:port/path")
    connection = HTTPConnection(parts.hostname, parts.port or 80, timeout=limit)
    try:
        connection.request("GET", parts.path or "/")
        response = connection.getresponse()
        text = response.read(_LONGEST).decode(errors="replace").strip()
    except (OSError, HTTPException) as error:
        return False, f"no answer: {error or type(error).__name__}"
    finally:
        connection.close()
    return response.status == 200, f"{response.status} {text}"


def health(url: str = DEFAULT_URL, limit: float = LIMIT_SECONDS, *, as_json: bool = False) -> None:
    """Check whether a role is ready; exit with 0, or with 1 and the reason."""
    try:
        ready, answer = probe(url, limit)
    except ValueError as error:
        sys.stderr.write(f"fleet: {error}\n")
        raise SystemExit(MISUSED) from error
    if as_json:
        answer = json.dumps({"roles": [{"url": url, "ready": ready, "answer": answer}]}, indent=2)
    sys.stdout.write(f"{answer}\n")
    raise SystemExit(READY if ready else NOT_READY)


if __name__ == "__main__":
    health(sys.argv[1] if len(sys.argv) > 1 else DEFAULT_URL)
