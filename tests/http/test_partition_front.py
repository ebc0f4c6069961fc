"""Which partition a request or an MQTT client is for."""

from __future__ import annotations

import pytest

from trunkline.actors.core.values.signed_claims import SignedClaims
from trunkline.http.mqtt.packets import Connect
from trunkline.http.mqtt.writer import connect as connect_bytes
from trunkline.http.processes.partition_front import DoorRouting, Routing
from trunkline.http.processes.placed_mqtt import application_named, first_packet_bytes

HERE, THERE = "0a" * 12, "0b" * 12


class KnownPlaces:
    """THERE is in partition 1, all else in the root."""

    own = 0

    def of_application(self, application: bytes) -> int:
        return int(application.hex() == THERE)


class NoHosts:
    def of_name(self, _name: str) -> None:
        return None

    def of_slug(self, _slug: str) -> None:
        return None


def token(**claims: str) -> str:
    return SignedClaims(bytes(32)).sign(claims)


@pytest.mark.parametrize(
    ("target", "place"),
    [
        (f"/applications/{THERE}", 1),
        (f"/applications/{THERE.upper()}/devices?filter=x", 1),
        (f"/applications/{HERE}/devices", 0),
        (f"/applications/{THERE}/clone", 0),  # a job of the user does it, in the root
        (f"/applications/{THERE}/cloneables", 1),
        (f"/applications/{THERE[:-1]}", 0),
        ("/applications", 0),
        ("/applications/health", 0),
        (f"/files/{THERE}/a/b.txt", 1),
        (f"/webhooks/{THERE}{HERE}secret", 1),
        (f"/webhooks/{HERE}{THERE}secret", 0),
        ("/downloads?token=" + token(sub=THERE + HERE), 1),
        ("/contents?x=1&token=" + token(a=THERE, c=HERE), 1),
        ("/contents?token=garbage", 0),
        ("/contents?token=" + token(sub="not hexadecimal"), 0),
        ("/me", 0),
        ("/x/slug/page", 0),
        ("/metrics", 0),
        ("/", 0),
        ("*", 0),
    ],
)
def test_requests(target: str, place: int) -> None:
    routing = Routing(KnownPlaces(), NoHosts())  # type: ignore[arg-type]
    assert routing.of_request(target.encode(), b"localhost") == place


def test_a_door_knows_applications_alone_and_owners_pass_the_rest_on() -> None:
    places = KnownPlaces()
    door = DoorRouting(places)  # type: ignore[arg-type]
    behind = Routing(places, NoHosts())  # type: ignore[arg-type]
    call, link = f"/applications/{THERE}".encode(), ("/downloads?token=" + token(sub=THERE)).encode()
    assert (door.of_request(call, b""), behind.of_request(call, b"")) == (1, 1)
    assert (door.of_request(link, b""), behind.of_request(link, b"")) == (0, 1)


@pytest.mark.parametrize(
    ("username", "password", "application"),
    [
        (THERE + HERE, "secret", THERE),
        (f"token/{THERE}", token(typ="user", sub=HERE), THERE),
        ("token", token(typ="user", sub=HERE), None),
        ("token", token(typ="device", sub=HERE, app=THERE), THERE),
        ("token", token(typ="application", sub=THERE), THERE),
        ("token", "no token", None),
        ("somebody", "secret", None),
        (None, None, HERE),
    ],
)
def test_mqtt_clients(username: str | None, password: str | None, application: str | None) -> None:
    connect = Connect(
        4, "client", username=username, password=None if password is None else password.encode()
    )
    found = application_named(connect, HERE + THERE)
    assert (None if found is None else found.hex()) == application


def test_the_first_packet_ends_where_its_length_says() -> None:
    packet = connect_bytes(Connect(4, "c" * 300))
    for end in range(len(packet)):
        assert first_packet_bytes(bytearray(packet[:end])) in (None, len(packet))
    assert first_packet_bytes(bytearray(packet + b"\xff" * 9)) == len(packet)
    assert (
        first_packet_bytes(bytearray(b"\x10\xff\xff\xff\xff\xff")) == 6
    )  # no length: it is refused as it is
