"""The plugin and the other roles read user names alike, whatever somebody sends."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.wire.identity import CredentialKeys, parse_username
from tests.support.plugin_build import BUILD, run_make

MAC = "02:75:6e:00:00:01"
KEYS = CredentialKeys("k1:a-key-for-tests-only-1")


class _Username(ctypes.Structure):
    _fields_ = (("device", ctypes.c_bool), ("key_id", ctypes.c_char * 33), ("generation", ctypes.c_uint32))


Reader = ctypes.CDLL
Read = tuple[str, str, int] | None


@pytest.fixture(scope="module")
def plugin() -> Reader:
    run_make(f"{BUILD}/identity.so")
    return ctypes.CDLL(str(BUILD / "identity.so"))


def read_by_plugin(plugin: Reader, text: str) -> Read:
    found = _Username()
    if not plugin.username_parse(text.encode(errors="surrogatepass"), ctypes.byref(found)):
        return None
    return "device" if found.device else "service", found.key_id.decode(), found.generation


def read_by_fleet(text: str) -> Read:
    found = parse_username(text)
    return None if found is None else (found.kind, found.key_id, found.generation)


KINDS = st.sampled_from(["device", "service", "Device", "", "admin"])
KEY_IDS = st.one_of(
    st.from_regex(r"[A-Za-z0-9_-]{1,34}", fullmatch=True), st.sampled_from(["", "k1", "k 1", "k\u0661"])
)
POLICIES = st.sampled_from(["open", "first", "code", "closed", "First", "", "other", "first "])
GENERATIONS = st.one_of(
    st.integers(-2, 2**64).map(str),
    st.sampled_from(
        ["", "0", "00", "01", "+1", "-0", " 1", "1 ", "1.", "0x1", "1e3", "\u0661", "\u00b2", "2147483648"]
    ),
    st.sampled_from([2**31 - 1, 2**31, 2**32, 2**32 + 1]).map(str),
)
ANY = st.text(st.characters(exclude_characters="\0"), max_size=70)  # MQTT allows no zero character
NAMES = st.one_of(
    ANY,
    st.builds("{}.{}".format, KINDS, KEY_IDS),
    st.builds("{}.{}.{}.{}".format, KINDS, KEY_IDS, POLICIES, GENERATIONS),
    st.builds("device.k1.{}.{}".format, POLICIES, GENERATIONS),
    st.builds("device.k1.first.{}{}".format, GENERATIONS, st.sampled_from(["\n", ".", "\r", "\u2028"])),
)


@given(NAMES)
def test_both_read_a_user_name_alike(plugin: Reader, text: str) -> None:
    assert read_by_plugin(plugin, text) == read_by_fleet(text)


NEVER_ISSUED = [
    *(".first", ".first.", ".first.0", ".first.01", ".first.+1", ".first.-1", ".first. 1", ".first.1\n", ".first.1.1"),
    *(".first.2147483648", ".first.4294967297", ".code.99999999999999999999", ".first.1e3", ".first.0x1", ".first..1"),
    *(".first.\u0661", ".first.\uff11", ".First.1", ".OPEN.0", ".open.1", ".open.", ".other.1", ".", ".."),
]


@pytest.mark.parametrize("tail", NEVER_ISSUED)
def test_both_refuse_what_was_never_issued(plugin: Reader, tail: str) -> None:
    name = f"device.k1{tail}"
    assert read_by_plugin(plugin, name) is None
    assert read_by_fleet(name) is None


@pytest.mark.parametrize("tail", ["", ".open.0", ".first.1", ".code.7", ".closed.2147483647"])
def test_both_take_what_is_issued(plugin: Reader, tail: str) -> None:
    name = f"device.k1{tail}"
    assert read_by_plugin(plugin, name) == read_by_fleet(name) != None  # noqa: E711
