"""The servers that other tests build on keep what their fixtures promise."""

import redis

from tests.support.mosquitto_server import MosquittoServer, shipped_config
from tests.support.mqtt_raw import RawClient
from tests.support.redis_server import RedisServer


def test_each_test_finds_an_empty_redis(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
        assert client.function_list() == []
        client.set("left", "over")
        client.function_load("#!lua name=left\nredis.register_function('left', function() return 1 end)")


def test_what_another_test_left_is_gone(redis_url: str) -> None:
    test_each_test_finds_an_empty_redis(redis_url)


def test_own_redis_keeps_its_data_when_it_is_killed(own_redis: RedisServer) -> None:
    with redis.Redis.from_url(own_redis.url) as client:
        client.set("kept", "1")
    own_redis.kill()
    own_redis.start()
    own_redis.restart()
    with redis.Redis.from_url(own_redis.url) as client:
        assert client.get("kept") == b"1"


async def test_plain_broker_lets_everybody_in(plain_broker: MosquittoServer) -> None:
    client = await RawClient.open(plain_broker.port)
    try:
        assert await client.connect("anybody") == 0
        assert await client.subscribe("#", qos=1) == 1
        await client.publish("anything", b"x")
        assert (await client.message()).payload == b"x"
    finally:
        await client.discard()


def test_test_broker_runs_the_shipped_configuration() -> None:
    config = shipped_config({"listener": "10001 127.0.0.1", "user": "root"}).splitlines()
    assert config.count("listener 10001 127.0.0.1") == 1
    assert "user root" in config
    assert "upgrade_outgoing_qos true" in config
    assert "listener 1883" not in config
