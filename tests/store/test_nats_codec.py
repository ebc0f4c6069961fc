"""The protocol of NATS: bytes mean the same however they are cut, and what is no protocol is an error."""

from __future__ import annotations

import pytest

from trunkline.store import nats_codec
from trunkline.store.nats_codec import Event, Info, Message, Parser, Ping, Pong, ProtocolError, Refusal

HEADERS = b"NATS/1.0\r\nTrace: a:b\r\n\r\n"
STATUS = b"NATS/1.0 503 No Responders\r\n\r\n"
SENT: list[tuple[bytes, Event]] = [
    (b'INFO {"server_name":"a","max_payload":1024}\r\n', Info({"server_name": "a", "max_payload": 1024})),
    (b"PING\r\n", Ping()),
    (b"pong\r\n", Pong()),
    (b"-ERR 'Authorization Violation'\r\n", Refusal("Authorization Violation")),
    (b"MSG a.b 7 5\r\nhe\r\nl\r\n", Message("a.b", 7, "", b"he\r\nl")),
    (b"MSG a.b 7 in.box 0\r\n\r\n", Message("a.b", 7, "in.box", b"")),
    (
        b"HMSG a 1 %d %d\r\n%bxyz\r\n" % (len(HEADERS), len(HEADERS) + 3, HEADERS),
        Message("a", 1, "", b"xyz", 0, "", {"Trace": "a:b"}),
    ),
    (
        b"HMSG a 1 r %d %d\r\n%b\r\n" % (len(STATUS), len(STATUS), STATUS),
        Message("a", 1, "r", b"", 503, "No Responders", {}),
    ),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_bytes_mean_the_same_however_they_are_cut(size: int) -> None:
    raw, parser = b"+OK\r\n".join(each for each, _ in SENT), Parser()
    found = [event for at in range(0, len(raw), size) for event in parser.feed(raw[at : at + size])]
    assert found == [event for _, event in SENT]


@pytest.mark.parametrize(
    "raw",
    [
        b"HELLO\r\n",
        b"INFO no\r\n",
        b"INFO []\r\n",
        b"MSG a 1\r\n",
        b"MSG a b c d e\r\n",
        b"MSG a one 5\r\n",
        b"MSG a 1 -5\r\n",
        b"MSG a 1 5\r\nhello!\r\n",
        b"MSG a 1 67108865\r\n",
        b"HMSG a 1 9 5\r\n",
        b"HMSG a 1 5 5\r\nhello\r\n",
        b"x" * (nats_codec.LINE_BYTES_MAX + 1),
    ],
)
def test_what_is_no_protocol_is_an_error(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(Parser().feed(raw))


def test_what_is_sent() -> None:
    assert nats_codec.connect({"verbose": False}) == b'CONNECT {"verbose":false}\r\n'
    assert nats_codec.subscribe("a.*", 3) == b"SUB a.* 3\r\n"
    assert nats_codec.unsubscribe(3) == b"UNSUB 3\r\n"
    assert nats_codec.publish("a", b"xy") == b"PUB a 2\r\nxy\r\n"
    assert nats_codec.publish("a", b"", reply="b") == b"PUB a b 0\r\n\r\n"
    head = b"NATS/1.0\r\nK: v\r\n\r\n"
    assert nats_codec.publish("a", b"xy", headers={"K": "v"}) == b"HPUB a %d %d\r\n%bxy\r\n" % (
        len(head),
        len(head) + 2,
        head,
    )


@pytest.mark.parametrize("subject", ["", "a b", "a\r\nPUB b 0", " a", "a\t"])
def test_a_subject_cannot_hold_another_line(subject: str) -> None:
    with pytest.raises(ValueError, match="is not a subject"):
        nats_codec.publish(subject, b"")
    with pytest.raises(ValueError, match="is not a subject"):
        nats_codec.subscribe(subject, 1)


@pytest.mark.parametrize(("name", "value"), [("", "a"), ("a:", "b"), ("a", "b\r\nc: d"), ("a\n", "b")])
def test_a_header_cannot_hold_another_one(name: str, value: str) -> None:
    with pytest.raises(ValueError, match="is not a header"):
        nats_codec.publish("a", b"", headers={name: value})
