"""What a CONNECT means: why it is refused whoever sends it, its will, and what the CONNACK says."""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.values.errors import Forbidden, Invalid
from trunkline.actors.data.topics.filters import check_topic
from trunkline.actors.data.topics.publication import Publication
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.device_topics import is_reserved
from trunkline.http.mqtt.login import Client
from trunkline.http.mqtt.packets import V3_1, V5, Connect
from trunkline.http.mqtt.publishing import PASSED_ON
from trunkline.http.mqtt.writer import connack
from trunkline.limits.table import Limits

CLIENT_ID_CHARS_MAX: Final = 256
NEAREST: Final = ("nearest", "true")
"""The user property of a client that connects elsewhere if it is told so."""


def problem_of(connect: Connect) -> tuple[int, str] | None:
    """Why a CONNECT is refused whoever sends it: the code and a sentence. None if it is not."""
    if "authentication_method" in connect.properties:
        return packets.BAD_AUTHENTICATION_METHOD, "this server has no enhanced authentication"
    if not connect.client_id and connect.version == V3_1:
        return packets.CLIENT_IDENTIFIER_NOT_VALID, "MQTT 3.1 has no client without an id"
    if not connect.client_id and not connect.clean_start and connect.version != V5:
        return packets.CLIENT_IDENTIFIER_NOT_VALID, "without a client id the session must be clean"
    if len(connect.client_id) > CLIENT_ID_CHARS_MAX:
        return (
            packets.CLIENT_IDENTIFIER_NOT_VALID,
            f"a client id has at most {CLIENT_ID_CHARS_MAX} characters",
        )
    return None


def will_of(connect: Connect, client: Client) -> Publication | None:
    """The will of a client. Its expiry is a property, as it begins when the will is published.

    Raises `DomainError` if the client may not publish it.
    """
    will = connect.will
    if will is None:
        return None
    if is_reserved(will.topic):
        raise Invalid(
            f"will topic: {will.topic} is a topic of devices, to which no will is published: a will is not a state. "
            "Choose a topic of the application, such as barn/offline."
        )
    check_topic(will.topic, "will topic")
    if not client.may_publish(will.topic):
        raise Forbidden(f"will topic: the access key does not allow to publish to {will.topic}.")
    names = (*PASSED_ON, "message_expiry_interval")
    properties = {name: will.properties[name] for name in names if name in will.properties}
    return Publication(will.topic, will.payload, will.qos, properties, None, client.key)


def wants_nearest(connect: Connect) -> bool:
    """Whether a client of 5 connects to the machine that serves its data, if it is told which that is."""
    return connect.version == V5 and NEAREST in connect.properties.get("user_property", ())


def session_expiry_s(connect: Connect, limits: Limits) -> int:
    """For how long the session of a client outlives its connection, in seconds; 0: not at all.

    A client of 3.1.1 only says whether its session is clean.
    """
    if connect.version != V5:
        return 0 if connect.clean_start else limits.mqtt_session_s_max
    asked_s: int = connect.properties.get("session_expiry_interval", 0)
    return min(asked_s, limits.mqtt_session_s_max)


def will_delay_s(connect: Connect, limits: Limits) -> int:
    """How long the will of a client waits: at most until its session ends."""
    if connect.will is None:
        return 0
    asked_s: int = connect.will.properties.get("will_delay_interval", 0)
    return min(asked_s, session_expiry_s(connect, limits))


def welcome(connect: Connect, limits: Limits, assigned_id: str | None, *, is_resumed: bool) -> bytes:
    """The CONNACK that accepts a client. `assigned_id` is its client id if the server has chosen it."""
    if connect.version != V5:
        return connack(connect.version, session_present=is_resumed)
    facts: dict[str, Any] = {
        "receive_maximum": limits.mqtt_in_flight_messages_max,
        "maximum_packet_size": limits.mqtt_packet_bytes_max,
        "topic_alias_maximum": limits.mqtt_topic_aliases_max,
    }
    expiry_s = session_expiry_s(connect, limits)
    if expiry_s != connect.properties.get("session_expiry_interval", 0):
        facts["session_expiry_interval"] = expiry_s
    if assigned_id is not None:
        facts["assigned_client_identifier"] = assigned_id
    return connack(V5, session_present=is_resumed, properties=facts)
