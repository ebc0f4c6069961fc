"""Reason codes in the packets that may have them."""

from __future__ import annotations

import pytest

from trunkline.http.mqtt import packets
from trunkline.http.mqtt.reason_codes import BY_SENDER, said_in


@pytest.mark.parametrize("packet", [packets.CONNACK, packets.DISCONNECT])
def test_whatever_ends_a_connection_is_said_with_a_code_that_the_packet_may_have(packet: int) -> None:
    for code in {code for codes in BY_SENDER[True].values() for code in codes if code >= 0x80}:
        said = said_in(packet, code)
        assert said in BY_SENDER[True][packet]
        assert said >= 0x80
        assert said in (code, said_in(packet, said))


def test_a_client_that_is_not_connected_yet_is_told_what_it_can_do() -> None:
    assert said_in(packets.CONNACK, packets.SERVER_SHUTTING_DOWN) == packets.SERVER_UNAVAILABLE
    assert said_in(packets.CONNACK, packets.MESSAGE_RATE_TOO_HIGH) == packets.CONNECTION_RATE_EXCEEDED
    assert said_in(packets.DISCONNECT, packets.BAD_USER_NAME_OR_PASSWORD) == packets.NOT_AUTHORIZED
