"""The commands of Redis that fleet uses, in memory and in virtual time; `functions.lua` runs in a real Lua 5.1.

tests/integration/redis runs the same tests over it and over real servers, so it cannot differ from them unnoticed.
Answers are those of the protocol RESP2; there is one database, and nothing is written to a disk.
"""

import asyncio
import fnmatch
import functools
import json
import math
import time
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from lupa import lua51
from redis.exceptions import ResponseError

_LOAD = """
function(code, functions, call)
  redis = {
    call = function(...)
      local answer = call(...)
      if answer == nil then return false end
      return answer
    end,
    error_reply = function(text) return {err = text} end,
    register_function = function(name, work) functions[name] = work end,
  }
  assert(loadstring(code))()
end
"""


_SCORE_AND_MEMBER = itemgetter(1, 0)


class SortedSet(dict[str, float]):
    """Scores by member."""

    def ordered(self) -> list[tuple[str, float]]:
        # Texts stand in the order of their bytes, as those of UTF-8 are in the order of the characters.
        return sorted(self.items(), key=_SCORE_AND_MEMBER)


class Stream(dict[str, list[str]]):
    """Fields by entry, oldest first."""

    newest = (0, 0)
    added = 0


T = TypeVar("T")


class MemoryRedis:
    """One server; `run` executes a command.

    Args:
        rate: Seconds of its clock in a second of the loop's.
    """

    def __init__(self, rate: float = 1.0) -> None:
        self._clock = asyncio.get_running_loop().time
        self._began, self._began_at = time.time(), self._clock()
        self.rate = rate
        self._values: dict[str, Any] = {}
        self._expiry: dict[str, float] = {}
        self._functions: dict[str, Callable[..., Any]] = {}
        self._lua = lua51.LuaRuntime(unpack_returned_tuples=True)
        self._lua.globals().cjson = self._lua.table_from({"encode": json.dumps})
        self.written = asyncio.Event()
        """Set by every entry in a stream."""

    def now(self) -> float:
        """Return the server's time as Unix seconds."""
        return self._began + (self._clock() - self._began_at) * self.rate

    def run(self, *words: Any) -> Any:
        """Execute a command; return its answer, or raise `ResponseError`."""
        name, *rest = [word.decode() if isinstance(word, bytes) else str(word) for word in words]
        name = name.upper().replace(" ", "_")
        work = getattr(self, f"_{name.lower()}", None)
        if work is None:
            raise ResponseError(f"unknown command {name}")
        return work(*rest)

    # The server

    def _info(self, _: str) -> str:
        return f"run_id:{id(self)}"

    # Keys

    def _get_value(self, key: str, kind: type[T]) -> T | None:
        if self._expiry.get(key, math.inf) <= self.now():
            self._values.pop(key, None)
            del self._expiry[key]
        value = self._values.get(key)
        if value is not None and not isinstance(value, kind):
            raise ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value")
        return value

    def _change(self, key: str, kind: Callable[[], T]) -> T:
        value: T | None = self._get_value(key, kind)  # type: ignore[arg-type]
        if value is None:
            value = self._values[key] = kind()
        return value

    def _tidy(self, key: str) -> None:
        if not self._values.get(key, True):
            self._drop(key)

    def _drop(self, key: str) -> int:
        found = self._get_value(key, object) is not None
        self._values.pop(key, None)
        self._expiry.pop(key, None)
        return int(found)

    def _del(self, *keys: str) -> int:
        return sum(map(self._drop, keys))

    def _exists(self, *keys: str) -> int:
        return sum(self._get_value(key, object) is not None for key in keys)

    def _pexpire(self, key: str, ms: str) -> int:
        if self._get_value(key, object) is None:
            return 0
        self._expiry[key] = self.now() + float(ms) / 1000
        return 1

    def _expire(self, key: str, seconds: str) -> int:
        return self._pexpire(key, str(float(seconds) * 1000))

    def _persist(self, key: str) -> int:
        return int(self._exists(key) and self._expiry.pop(key, None) is not None)

    def lasts(self, key: str) -> float:
        """Return for how many seconds of the loop's clock a key still exists."""
        return (self._expiry[key] - self.now()) / self.rate if self._exists(key) else 0.0

    def _ttl(self, key: str) -> int:
        if not self._exists(key):
            return -2
        return round(self._expiry[key] - self.now()) if key in self._expiry else -1

    def _scan(self, cursor: str, *options: str) -> list[Any]:
        assert cursor == "0", "the first page has everything"
        pattern = dict(zip(options[::2], options[1::2], strict=True)).get("MATCH", "*")
        return ["0", [key for key in list(self._values) if self._exists(key) and fnmatch.fnmatchcase(key, pattern)]]

    def _flushall(self) -> str:
        self._values.clear()
        self._expiry.clear()
        return "OK"

    def _time(self) -> list[str]:
        now = self.now()
        return [str(int(now)), str(int(now % 1 * 1_000_000))]

    # Texts and lists

    def _get(self, key: str) -> str | None:
        return self._get_value(key, str)

    def _getdel(self, key: str) -> str | None:
        value = self._get(key)
        self._drop(key)
        return value

    def _getex(self, key: str, _: str, seconds: str) -> str | None:
        self._pexpire(key, str(float(seconds) * 1000))
        return self._get(key)

    def _set(self, key: str, value: str, *options: str) -> str | None:
        if "NX" in options and self._exists(key):
            return None
        self._values[key] = value
        self._expiry.pop(key, None)
        for unit, ms in (("EX", 1000), ("PX", 1)):
            if unit in options:
                self._pexpire(key, str(float(options[options.index(unit) + 1]) * ms))
        return "OK"

    def _incr(self, key: str) -> int:
        self._values[key] = str(int(self._get(key) or 0) + 1)
        return int(self._values[key])

    def _rpush(self, key: str, *values: str) -> int:
        found = self._change(key, list)
        found.extend(values)
        return len(found)

    def _lrange(self, key: str, first: str, last: str) -> list[str]:
        return _cut(self._get_value(key, list) or [], first, last)

    def _llen(self, key: str) -> int:
        return len(self._get_value(key, list) or [])

    def _lrem(self, key: str, count: str, value: str) -> int:
        assert count in ("0", "-1"), "all of them, or the last one"
        found = self._get_value(key, list) or []
        places = [place for place, item in enumerate(found) if item == value]
        gone = places[int(count) :] if places else []
        found[:] = [item for place, item in enumerate(found) if place not in gone]
        self._tidy(key)
        return len(gone)

    def _ltrim(self, key: str, first: str, last: str) -> str:
        if found := self._get_value(key, list):
            found[:] = _cut(found, first, last)
            self._tidy(key)
        return "OK"

    # Hashes and sets

    def _hset(self, key: str, *pairs: str) -> int:
        found = self._change(key, dict)
        before = len(found)
        found.update(zip(pairs[::2], pairs[1::2], strict=True))
        return len(found) - before

    def _hsetnx(self, key: str, field: str, value: str) -> int:
        return 0 if self._hexists(key, field) else self._hset(key, field, value)

    def _hincrby(self, key: str, field: str, more: str) -> int:
        count = int(self._hget(key, field) or 0) + int(float(more))
        self._hset(key, field, str(count))
        return count

    def _hdel(self, key: str, *fields: str) -> int:
        found = self._get_value(key, dict) or {}
        gone = sum(found.pop(field, None) is not None for field in fields)
        self._tidy(key)
        return gone

    def _hget(self, key: str, field: str) -> str | None:
        return (self._get_value(key, dict) or {}).get(field)

    def _hmget(self, key: str, *fields: str) -> list[str | None]:
        return list(map((self._get_value(key, dict) or {}).get, fields))

    def _hgetall(self, key: str) -> list[str]:
        return [part for pair in (self._get_value(key, dict) or {}).items() for part in pair]

    def _hexists(self, key: str, field: str) -> int:
        return int(self._hget(key, field) is not None)

    def _hkeys(self, key: str) -> list[str]:
        return list(self._get_value(key, dict) or {})

    def _hvals(self, key: str) -> list[str]:
        return list((self._get_value(key, dict) or {}).values())

    def _hlen(self, key: str) -> int:
        return len(self._get_value(key, dict) or {})

    def _hscan(self, key: str, cursor: str, *_: str) -> list[Any]:
        assert cursor == "0", "the first page has everything"
        return ["0", self._hgetall(key)]

    def _sadd(self, key: str, *members: str) -> int:
        found = self._change(key, set)
        before = len(found)
        found.update(members)
        return len(found) - before

    def _srem(self, key: str, *members: str) -> int:
        found = self._get_value(key, set) or set()
        before = len(found)
        found.difference_update(members)
        gone = before - len(found)
        self._tidy(key)
        return gone

    def _smembers(self, key: str) -> list[str]:
        return sorted(self._get_value(key, set) or ())

    def _srandmember(self, key: str, count: str) -> list[str]:
        return self._smembers(key)[: int(count)]

    def _scard(self, key: str) -> int:
        return len(self._get_value(key, set) or ())

    def _sismember(self, key: str, member: str) -> int:
        return int(member in (self._get_value(key, set) or ()))

    def _smismember(self, key: str, *members: str) -> list[int]:
        return [self._sismember(key, member) for member in members]

    def _sscan(self, key: str, cursor: str, *_: str) -> list[Any]:
        assert cursor == "0", "the first page has everything"
        return ["0", self._smembers(key)]

    # Sorted sets

    def _zadd(self, key: str, *words: str) -> int:
        found, only = self._change(key, SortedSet), words[0] if words[0] in ("NX", "XX") else ""
        pairs = words[1:] if only else words
        before = len(found)
        for score, member in zip(pairs[::2], pairs[1::2], strict=True):
            if not only or (only == "XX") == (member in found):
                found[member] = float(score)
        self._tidy(key)
        return len(found) - before

    def _zincrby(self, key: str, more: str, member: str) -> str:
        found = self._change(key, SortedSet)
        found[member] = found.get(member, 0.0) + float(more)
        return _number(found[member])

    def _zrem(self, key: str, *members: str) -> int:
        found = self._get_value(key, SortedSet) or SortedSet()
        gone = sum(found.pop(member, None) is not None for member in members)
        self._tidy(key)
        return gone

    def _sorted(self, key: str) -> list[tuple[str, float]]:
        return (self._get_value(key, SortedSet) or SortedSet()).ordered()

    def _zcard(self, key: str) -> int:
        return len(self._get_value(key, SortedSet) or ())

    def _zscore(self, key: str, member: str) -> str | None:
        score = (self._get_value(key, SortedSet) or {}).get(member)
        return None if score is None else _number(score)

    def _zmscore(self, key: str, *members: str) -> list[str | None]:
        return [self._zscore(key, member) for member in members]

    def _zrange(self, key: str, first: str, last: str, *options: str) -> list[str]:
        if "BYSCORE" in options:
            return self._zrangebyscore(key, first, last, *(one for one in options if one != "BYSCORE"))
        return _members(_cut(self._sorted(key), first, last), options)

    def _zrevrange(self, key: str, first: str, last: str, *options: str) -> list[str]:
        return _members(_cut(self._sorted(key)[::-1], first, last), options)

    def _zrangebyscore(self, key: str, low: str, high: str, *options: str) -> list[str]:
        found = [pair for pair in self._sorted(key) if _within(pair[1], low, high)]
        if "LIMIT" in options:
            at = options.index("LIMIT")
            start = int(options[at + 1])
            found = found[start : start + int(options[at + 2])]
        return _members(found, options)

    def _zcount(self, key: str, low: str, high: str) -> int:
        return len(self._zrangebyscore(key, low, high))

    def _zremrangebyscore(self, key: str, low: str, high: str) -> int:
        return self._zrem(key, *self._zrangebyscore(key, low, high))

    def _zremrangebyrank(self, key: str, first: str, last: str) -> int:
        return self._zrem(key, *self._zrange(key, first, last))

    def _zscan(self, key: str, cursor: str, *_: str) -> list[Any]:
        assert cursor == "0", "the first page has everything"
        return ["0", _members(self._sorted(key), ("WITHSCORES",))]

    # Streams

    def _xadd(self, key: str, *words: str) -> str | None:
        if words[0] == "NOMKSTREAM":
            if not self._exists(key):
                return None
            words = words[1:]
        most, at = 0, 0
        if words[0] == "MAXLEN":
            at = 3 if words[1] == "~" else 2
            most = int(words[at - 1])
        found = self._change(key, Stream)
        soonest = (found.newest[0], found.newest[1] + 1)
        found.newest = max((int(self.now() * 1000), 0), soonest) if words[at] == "*" else _order(words[at])
        assert found.newest >= soonest, "an id must be above all earlier ones"
        found.added += 1
        entry = "{}-{}".format(*found.newest)
        found[entry] = list(words[at + 1 :])
        while most and len(found) > most:
            del found[next(iter(found))]
        self.written.set()
        return entry

    def _xdel(self, key: str, *entries: str) -> int:
        found = self._get_value(key, Stream) or {}
        return sum(found.pop(entry, None) is not None for entry in entries)

    def _xtrim(self, key: str, how: str, bound: str) -> int:
        assert how == "MINID"
        found = self._get_value(key, Stream) or Stream()
        return self._xdel(key, *[entry for entry in found if _order(entry) < _order(bound)])

    def _xinfo(self, what: str, key: str) -> list[Any]:
        found = self._get_value(key, Stream)
        assert what == "STREAM" and found is not None
        return ["length", len(found), "entries-added", found.added]

    def _xlen(self, key: str) -> int:
        return len(self._get_value(key, Stream) or ())

    def _xrange(self, key: str, low: str, high: str, *options: str) -> list[Any]:
        found = [
            [entry, fields]
            for entry, fields in (self._get_value(key, Stream) or {}).items()
            if low == "-" or _order(entry) > _order(low[1:]) or (low[0] != "(" and entry == low)
        ]
        return found[: int(options[1])] if options else found

    def _xrevrange(self, key: str, high: str, low: str, *options: str) -> list[Any]:
        found = self._xrange(key, "-", "+")[::-1]
        return found[: int(options[1])] if options else found

    # Functions

    def _function_list(self, *_: str) -> list[Any]:
        return []

    def _function_flush(self, *_: str) -> str:
        self._functions.clear()
        return "OK"

    def _function_load(self, *words: str) -> str:
        code = words[-1]
        heading, _, body = code.partition("\n")
        assert heading.startswith("#!lua"), heading
        self._lua.eval(_LOAD)(_compiled(body), self._functions, self._call)
        return "OK"

    def _call(self, *words: Any) -> Any:
        return _to_lua(self._lua, self.run(*[_number(word) if isinstance(word, float) else word for word in words]))

    def _fcall(self, name: str, count: str, *words: str) -> Any:
        work = self._functions.get(name)
        if work is None:
            raise ResponseError("ERR Function not found")
        keys, args = words[: int(count)], words[int(count) :]
        answer = work(self._lua.table_from(keys), self._lua.table_from(args))
        return _from_lua(answer)


@functools.cache
def _compiled(body: str) -> bytes:
    """Return Lua's code as `string.dump` writes it: to read its text takes each server 2 ms of a core."""
    lua = lua51.LuaRuntime(encoding=None)
    return bytes(lua.eval("function(code) return string.dump(assert(loadstring(code))) end")(body.encode()))


def _cut(items: Sequence[T], first: str, last: str) -> list[T]:
    begin, end = int(first), int(last)
    begin = max(0, begin + len(items)) if begin < 0 else begin
    end = end + len(items) if end < 0 else end
    return list(items[begin : max(begin, end + 1)])


def _number(value: float) -> str:
    """Write a number as Redis and Lua do."""
    return "inf" if math.isinf(value) else str(int(value)) if value == int(value) else f"{value:.17g}"


def _within(score: float, low: str, high: str) -> bool:
    over = score > float(low[1:]) if low.startswith("(") else score >= float(low)
    return over and (score < float(high[1:]) if high.startswith("(") else score <= float(high))


def _members(pairs: Sequence[tuple[str, float]], options: Sequence[str]) -> list[str]:
    if "WITHSCORES" not in options:
        return [member for member, _ in pairs]
    return [part for member, score in pairs for part in (member, _number(score))]


def _order(entry: str) -> tuple[int, int]:
    ms, _, number = entry.partition("-")
    return int(ms), int(number or 0)


def _to_lua(lua: Any, answer: Any) -> Any:
    if isinstance(answer, list):
        return lua.table_from([False if part is None else _to_lua(lua, part) for part in answer])
    return answer


def _from_lua(answer: Any) -> Any:
    """Return a function's answer as Redis sends it: numbers lose their fraction, an array ends at the first nil."""
    if isinstance(answer, bool):
        return 1 if answer else None
    if isinstance(answer, float):
        return int(answer)
    if lua51.lua_type(answer) != "table":
        return answer
    if answer["err"] is not None:
        raise ResponseError(str(answer["err"]))
    parts: list[Any] = []
    while (part := answer[len(parts) + 1]) is not None:
        parts.append(_from_lua(part))
    return parts
