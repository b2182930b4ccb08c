"""The console's files over HTTP."""

import re

from tests.support.control_server import ControlStage


async def test_the_root_leads_to_the_console_whose_files_need_no_token(empty: ControlStage) -> None:
    led = await empty.client.get("/")
    assert (led.status_code, led.headers["location"]) == (302, "console/")
    page = await empty.client.get("/console/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.split(" ", 1) for part in page.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'" and policy["style-src"] == "'self'"
    assert re.fullmatch(r"'self' 'sha256-[\w+/=]{44}'", policy["script-src"])
    assert (policy["require-trusted-types-for"], policy["trusted-types"]) == ("'script'", "'none'")
    again = await empty.client.get("/console/", headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    plain = await empty.client.get("/console/main.js", headers={"Accept-Encoding": "identity"})
    packed = await empty.client.get("/console/main.js", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers and packed.headers["content-encoding"] == "gzip"
    assert plain.content == packed.content


async def test_nothing_else_of_the_disk_is_served(empty: ControlStage) -> None:
    for path in ("../app.py", "..%2fapp.py", "vendor/packages.json", "vendor/LICENSE.htm", "core", "/etc/passwd", "x"):
        assert (await empty.client.get(f"/console/{path}")).status_code == 404, path
