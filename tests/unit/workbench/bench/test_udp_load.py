from fleet.wire import packet
from fleet.workbench.bench import streams
from fleet.workbench.bench.udp_load import Stream

AUDIO = b"\x58" + bytes(30)


def stream_of(number: int) -> Stream:
    return Stream(streams.ssrc(number), streams.key(number))


def test_a_device_sends_what_the_edge_opens() -> None:
    stream = stream_of(7)
    stream.seal(AUDIO)
    header = packet.parse(datagram := stream.seal(AUDIO))
    assert header == packet.Header(flags=0, length=31, ssrc=streams.ssrc(7), timestamp=0, sequence=2)
    assert packet.Channel(streams.key(7), streams.ssrc(7)).open(datagram) == AUDIO


def test_a_device_knows_audio_under_its_own_key() -> None:
    own, foreign = stream_of(1), stream_of(2)
    datagram = packet.Channel(streams.key(1), streams.ssrc(1)).seal(AUDIO, 60, 1)
    own.take(datagram, 1)
    foreign.take(datagram, 1)
    assert own.heard
    assert not foreign.heard


def test_streams_have_names_of_their_own() -> None:
    assert len({streams.key(number) for number in range(300)}) == 300
    assert all(len(streams.key(number)) == 16 for number in range(300))
    assert len({streams.ssrc(number) for number in range(300)}) == 300
    assert streams.device(258) == "02:00:00:00:01:02"
