import random

from fleet.workbench.sim.connection.udp_path import forge

DATAGRAM = bytes.fromhex("0100001411223344000000000000002a") + bytes(20)


def test_a_forged_datagram_has_the_ssrc_a_likely_number_and_a_sound_length() -> None:
    for ahead in range(1, 50):
        forged = forge(DATAGRAM, ahead, random.Random(ahead))
        assert forged[:2] + forged[4:12] == DATAGRAM[:2] + DATAGRAM[4:12]
        assert int.from_bytes(forged[12:16], "big") == 42 + ahead
        assert int.from_bytes(forged[2:4], "big") == len(forged) - 16
        assert forged[16:] != DATAGRAM[16:]


def test_the_number_stays_in_its_four_bytes() -> None:
    last = DATAGRAM[:12] + b"\xff" * 4
    assert forge(last, 1, random.Random(1))[12:16] == bytes(4)
