import pytest

from fleet.ground.errors import ConfigError
from fleet.ground.settings import load
from fleet.run.gateway import log_settings, model_terms

DOCUMENTED = {
    "cloud_host": "0.0.0.0",
    "cloud_port": 9400,
    "cloud_ping_interval": 30,
    "cloud_ping_timeout": 300,
    "cloud_max_connections": 100,
    "cloud_session_timeout": 3600,
    "llm_enable_context": False,
    "mcp_enabled": True,
    "mcp_server_name": "arcs-mini-mcp-server",
    "mcp_protocol_version": "2024-11-05",
    "client_tools_enabled": True,
    "client_tools_max_count": 32,
    "client_tool_timeout": 30,
    "client_tool_result_queue_size": 10,
}
MODEL = ("LLM_TEMPERATURE", "LLM_MAX_TOKENS", "LLM_TIMEOUT")


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*(name.upper() for name in DOCUMENTED), *MODEL, "CLOUD_LOG_LEVEL", "CLOUD_LOG_FORMAT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("FLEET_LOG_LEVEL", "FLEET_LOG_FORMAT", "FLEET_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def test_defaults_are_those_of_the_document() -> None:
    settings = load()
    assert {name: getattr(settings, name) for name in DOCUMENTED} == DOCUMENTED
    assert log_settings(settings) == ("info", "json")
    terms = model_terms(settings)
    assert (terms.temperature, terms.max_tokens, settings.llm_timeout) == (0.7, 2048, 120.0)


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_every_variable_is_read_under_its_own_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    default = DOCUMENTED[name]
    other = str(not default).lower() if isinstance(default, bool) else "7"
    monkeypatch.setenv(name.upper(), other)
    assert str(getattr(load(), name)).lower().removesuffix(".0") == other


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CLOUD_PORT", "70000"),
        ("CLOUD_PING_INTERVAL", "0"),
        ("CLOUD_MAX_CONNECTIONS", "0"),
        ("CLOUD_SESSION_TIMEOUT", "-1"),
        ("CLOUD_LOG_LEVEL", "loud"),
        ("CLIENT_TOOL_TIMEOUT", "0"),
        ("CLIENT_TOOL_RESULT_QUEUE_SIZE", "0"),
        ("LLM_ENABLE_CONTEXT", "perhaps"),
    ],
)
def test_wrong_value_is_told_by_its_variable(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=name):
        load()


def test_model_terms_follow_the_shared_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_TEMPERATURE", "0")
    monkeypatch.setenv("LLM_MAX_TOKENS", "100")
    terms = model_terms(load())
    assert (terms.temperature, terms.max_tokens) == (0.0, 100)


def test_log_follows_the_documents_variables_then_fleets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_LOG_LEVEL", "warning")
    monkeypatch.setenv("FLEET_LOG_FORMAT", "console")
    assert log_settings(load()) == ("warning", "console")
    monkeypatch.setenv("CLOUD_LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("CLOUD_LOG_FORMAT", "json")
    assert log_settings(load()) == ("debug", "json")
    monkeypatch.setenv("CLOUD_LOG_LEVEL", "CRITICAL")
    monkeypatch.setenv("CLOUD_LOG_FORMAT", "text")
    assert log_settings(load()) == ("error", "console")
