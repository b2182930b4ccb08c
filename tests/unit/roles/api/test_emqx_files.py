"""The configuration for EMQX says what fleet's code does; whether EMQX takes it is tested with a real one."""

import re
from pathlib import Path
from typing import Any

import pyhocon
import pytest

from fleet.adapters.net.mqtt.emqx import AGAIN_SECONDS
from fleet.roles.api.mqtt_login import PATH, MqttLoginBody, attributes
from fleet.wire import presence, topics
from tests.support.emqx_acl import allows, read_terms

FOLDER = Path(__file__).parents[4] / "deploy" / "emqx"
MAC = "aa:bb:cc:dd:ee:ff"
OTHER = "02:00:00:00:00:01"
EPOCH = 1_790_000_000_123_000


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    parsed: dict[str, Any] = pyhocon.ConfigFactory.parse_file(FOLDER / "emqx.conf").as_plain_ordered_dict()
    return parsed


@pytest.fixture(scope="module")
def rules() -> list[Any]:
    return read_terms(FOLDER / "acl.conf")


def filled(template: str, **values: object) -> str:
    """Return a template of EMQX with its placeholders filled."""
    return re.sub(r"\$\{(\w+)\}", lambda found: str(values[found[1]]), template)


def test_there_is_exactly_one_authenticator_and_it_asks_the_api(config: dict[str, Any]) -> None:
    [one] = config["authentication"]
    assert (one["mechanism"], one["backend"], one["method"]) == ("password_based", "http", "post")
    assert one["url"].endswith(PATH)
    assert one["body"] == {name: f"${{{name}}}" for name in MqttLoginBody.model_fields}
    assert one["headers"] == {"content-type": "application/json"}
    assert one["request_timeout"].total_seconds() < AGAIN_SECONDS


def test_what_no_rule_allows_is_denied(config: dict[str, Any], rules: list[Any]) -> None:
    assert config["authorization"]["no_match"] == "deny"
    assert [source["path"] for source in config["authorization"]["sources"]] == ["etc/acl.conf"]
    assert rules[-1] == ("'deny", "'all")


def test_devices_are_subscribed_by_the_broker_once_at_most(config: dict[str, Any]) -> None:
    [one] = config["auto_subscribe"]["topics"]
    assert filled(one["topic"], clientid=MAC) == topics.down_topic(MAC)
    assert one["qos"] == 0


def test_shard_sessions_keep_what_devices_publish_at_qos_0(config: dict[str, Any]) -> None:
    mqtt = config["mqtt"]
    assert mqtt["upgrade_qos"] is True and mqtt["mqueue_store_qos0"] is True
    assert mqtt["retry_interval"] == "infinity"
    assert config["force_shutdown"]["max_mailbox_size"] > mqtt["max_mqueue_len"]


def test_nothing_is_retained_delayed_or_shared(config: dict[str, Any]) -> None:
    assert config["mqtt"]["retain_available"] is False and config["retainer"]["enable"] is False
    assert config["delayed"]["enable"] is False
    assert config["mqtt"]["shared_subscription"] is False and config["mqtt"]["exclusive_subscription"] is False
    assert not any(config["listeners"][kind]["default"]["enable"] for kind in ("ws", "wss"))


@pytest.mark.parametrize(
    ("rule", "event", "online", "expired"),
    [
        ("fleet_online", "client_connected", True, False),
        ("fleet_offline", "client_disconnected", False, False),
        ("fleet_expired", "client_disconnected", False, True),
    ],
)
def test_presence_comes_in_our_words_on_our_topic(
    config: dict[str, Any], rule: str, event: str, online: bool, expired: bool
) -> None:
    found = config["rule_engine"]["rules"][rule]
    assert f"FROM \"$events/{event}\" WHERE client_attrs.kind = 'device'" in found["sql"]
    assert "connected_at * 1000 as epoch" in found["sql"] and "client_attrs.slot as slot" in found["sql"]
    [action] = found["actions"]
    args = action["args"]
    assert (action["function"], args["qos"], args["retain"]) == ("republish", 1, False)
    slot = attributes("device", MAC)["slot"]
    assert filled(args["topic"], slot=slot, clientid=MAC) == topics.presence_topic(MAC)
    user = "device.k1.first.3"
    told = filled(args["payload"], epoch=EPOCH, username=user)
    assert presence.parse(told.encode()) == presence.Presence(
        online=online, epoch=EPOCH, expired=expired, user=user if online else ""
    )


def test_each_end_of_a_connection_is_told_once(config: dict[str, Any]) -> None:
    ends = {name: rule["sql"].partition("reason ")[2] for name, rule in config["rule_engine"]["rules"].items()}
    assert ends == {
        "fleet_online": "",
        "fleet_offline": "<> 'keepalive_timeout'",
        "fleet_expired": "= 'keepalive_timeout'",
    }


def device(mac: str = MAC) -> dict[str, Any]:
    return {"clientid": mac, "username": "device.k1", "client_attrs": attributes("device", mac)}


SERVICE = {
    "clientid": "fleet-shard-1",
    "username": "service.k1",
    "client_attrs": attributes("service", "fleet-shard-1"),
}


def publish(qos: int = 0, *, retain: bool = False) -> dict[str, Any]:
    return {"type": "publish", "qos": qos, "retain": retain}


def subscribe(qos: int = 0) -> dict[str, Any]:
    return {"type": "subscribe", "qos": qos}


def test_a_device_has_its_own_two_topics_and_no_other(rules: list[Any]) -> None:
    assert allows(rules, device(), publish(), topics.up_topic(MAC))
    assert allows(rules, device(), subscribe(), topics.down_topic(MAC))
    refused = [
        (publish(retain=True), topics.up_topic(MAC)),
        (publish(2), topics.up_topic(MAC)),
        (publish(), topics.up_topic(OTHER)),
        (publish(), f"fleet/up/{topics.slot(OTHER)}/{MAC}"),
        (publish(), topics.down_topic(MAC)),
        (publish(), topics.down_topic(OTHER)),
        (publish(), topics.presence_topic(MAC)),
        (publish(), "fleet/shard/1/lost"),
        (publish(), "fleet/broker/boot"),
        (publish(), "$SYS/brokers"),
        (subscribe(1), topics.down_topic(MAC)),
        *(
            (subscribe(), wanted)
            for wanted in (
                topics.down_topic(OTHER),
                topics.up_topic(MAC),
                "#",
                "+/+/+",
                "fleet/down/+",
                "fleet/down/#",
                "$SYS/#",
                f"$share/g/{topics.down_topic(MAC)}",
                f"$queue/{topics.down_topic(MAC)}",
                f"$exclusive/{topics.down_topic(MAC)}",
            )
        ),
    ]
    for action, topic in refused:
        assert not allows(rules, device(), action, topic), (action, topic)


def test_services_read_and_write_what_they_need(rules: list[Any]) -> None:
    for wanted in [*topics.shard_filters(3, 16), "fleet/broker/boot", "fleet/shard/+/lost", "fleet/up/#"]:
        assert allows(rules, SERVICE, subscribe(1), wanted), wanted
    for topic in (topics.down_topic(MAC), topics.lost_topic(3)):
        assert allows(rules, SERVICE, publish(1), topic)
        assert not allows(rules, SERVICE, publish(1, retain=True), topic)
    for topic in (topics.up_topic(MAC), topics.presence_topic(MAC), "fleet/broker/boot", "fleet/down/a/b"):
        assert not allows(rules, SERVICE, publish(), topic), topic
    for wanted in ("#", "fleet/#", "fleet/down/#", "$SYS/#", "$share/g/fleet/up/#"):
        assert not allows(rules, SERVICE, subscribe(), wanted), wanted


def test_a_client_without_a_slot_writes_nothing(rules: list[Any]) -> None:
    lost = {**device(), "client_attrs": {}}
    assert not allows(rules, lost, publish(), topics.up_topic(MAC))
