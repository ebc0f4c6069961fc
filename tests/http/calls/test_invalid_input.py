"""What does not fit its type is refused in the words of JSON, with the field and what would be right."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import FORM
from trunkline.http.calls.json_body import decode
from trunkline.http.calls.route import Route
from trunkline.http.routes import TABLE

ROUTES = {route.operation: route for route in TABLE.routes}
BODIES = [route for route in TABLE.routes if route.decoder is not None]
PYTHON_WORDS = re.compile(r"\b(str|int|float|bool|dict|list|None|True|False|NoneType|UnsetType|regex)\b")


def sentence(operation: str, body: Any) -> str:
    """The sentence about a wrong body of an operation."""
    decoder = ROUTES[operation].decoder
    assert decoder is not None
    with pytest.raises(Invalid) as refused:
        decode(decoder, body if isinstance(body, bytes) else json.dumps(body).encode())
    return refused.value.message


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (rb'{"data": {"s": "\ud800"}}', "a text in it has half of a surrogate pair (byte 16)"),
        (rb'{"data": {"s": "\\\ud800"}}', "a text in it has half of a surrogate pair (byte 18)"),
        (rb'{"data": {"s": "\ud800abcdefghijk"}}', "a text in it has half of a surrogate pair (byte 22)"),
        (rb'{"data": {"s": "\udc00"}}', "a text in it has half of a surrogate pair (byte 22)"),
        (rb'{"data": {"s": "\ud83d\ude00"}', "Input data was truncated (byte 30)"),
        (rb'{"data": {"s": "\\ud800"}', "Input data was truncated (byte 25)"),
        (rb'{"data": {"s": "\ud800', "Input data was truncated (byte 22)"),
    ],
)
def test_half_of_a_surrogate_pair_is_named(body: bytes, expected: str) -> None:
    assert sentence("device.sendState", body) == f"The body is not JSON: {expected}."


@pytest.mark.parametrize(
    ("operation", "body", "expected"),
    [
        ("events.post", {"level": "high"}, "level: is 'high'; give one of critical, error, info, warning."),
        ("events.patch", {"state": "open"}, "state: is 'open'; give one of acknowledged, new, resolved."),
        ("events.patch", {"deviceId": 5}, "deviceId: is 5; give an id of 24 hexadecimal digits."),
        ("events.post", {}, "level: is missing; this body needs it, one of critical, error, info, warning."),
        (
            "devices.post",
            {"name": "x", "attributes": [{"name": "t", "dataType": "double"}]},
            "attributes[0].dataType: is 'double'; give one of blob, boolean, gps, number, string.",
        ),
        ("devices.post", {"name": 5}, "name: is 5; give a string of 1 to 255 characters."),
        ("devices.post", {"name": None}, "name: is null; give a string of 1 to 255 characters."),
        ("devices.post", {"name": ""}, "name: has 0 characters; give a string of 1 to 255 characters."),
        (
            "devices.post",
            {"name": "x", "tags": {}},
            "tags: is an object; give an array of at most 100 items.",
        ),
        (
            "devices.post",
            {"name": "x", "tags": [{"key": "a", "value": "b"}] * 101},
            "tags: has 101 items; give an array of at most 100 items.",
        ),
        (
            "devices.post",
            {"name": "x", "tags": [{"key": "a b", "value": "c"}]},
            "tags[0].key: does not fit; give 1 to 255 letters, digits, _ and -.",
        ),
        (
            "devices.post",
            {"name": "x", "attributes": [{"name": "t"}]},
            "attributes[0].dataType: is missing; this body needs it, one of blob, boolean, gps, number, string.",
        ),
        ("devices.post", [], "The body: is an array; give an object with name."),
        ("devices.post", b"[", "The body: does not fit; give an object with name."),
        (
            "device.sendState",
            {"temp": 20},
            (
                'temp: there is no such field in this body; the values of the attributes go under data, as in {"data": '
                '{"temp": 20}}; it takes data, time, meta, flowVersion.'
            ),
        ),
        (
            "device.sendState",
            [{"data": {}}, {"date": {}}],
            "[1].date: there is no such field in this body (did you mean time?); the values of the attributes go ",
        ),
        (
            "device.sendState",
            {},
            "data: is missing; this body needs it, an object; the values of the attributes ",
        ),
        (
            "device.sendState",
            {"data": {}, "time": True},
            "time: is true; give ISO 8601 text such as 2024-05-01T12",
        ),
        ("device.sendState", "x", "The body: is a string; give an object with data or an array."),
        ("device.setConnectionStatus", {"status": 5}, "status: is 5; give one of connected, disconnected."),
        (
            "device.setConnectionStatus",
            {"status": "gone"},
            "status: is 'gone'; give one of connected, disconnected.",
        ),
        (
            "device.setConnectionStatus",
            {"status": "connected", "disconnectReason": "x"},
            "disconnectReason: there is no such field in this body; it takes status, connectedAt, ipAddress.",
        ),
        (
            "data.timeSeriesQuery",
            {"aggregation": "AVG"},
            (
                "aggregation: is 'AVG'; give one of COUNT, FIRST, LAST, MAX, MEAN, MEDIAN, MIN, NONE, STD_DEV, SUM "
                "or an object with type."
            ),
        ),
        (
            "data.timeSeriesQuery",
            {"aggregation": {"type": "AVG"}},
            (
                "aggregation.type: is 'AVG'; give one of COUNT, FIRST, LAST, MAX, MEAN, MEDIAN, MIN, NONE, STD_DEV, "
                "SUM, TIMEATVALUE."
            ),
        ),
        (
            "me.patch",
            {"tokenCutoff": 5},
            "tokenCutoff: is 5; give ISO 8601 text such as 2024-05-01T12:00:00.000Z.",
        ),
        ("data.timeSeriesQuery", {"limit": "5"}, "limit: is '5'; give a number."),
        (
            "applicationKeys.post",
            {"pubTopics": ["a/+/b", "#", "a/#", "a//b", "a/#/b"]},
            "pubTopics[4]: does not fit; give a topic, which may have wildcards: + and # for whole levels, # at the ",
        ),
        (
            "applicationCertificates.post",
            {"subTopics": ["a+"]},
            "subTopics[0]: does not fit; give a topic, which may have wildcards: + and # for whole levels, # at the ",
        ),
        ("dataTableRows.post", [1], "[0]: is 1; give an object."),
        (
            "deviceAttribute.patch",
            {"attributeTags": {"unit": "C", "Ein heit": "x"}},
            "attributeTags: the key 'Ein heit' does not fit; give 1 to 255 letters, digits, _ and -.",
        ),
        (
            "dashboard.validateContext",
            {"a b": "x"},
            "The body: the key 'a b' does not fit; give 1 to 255 letters, digits, _ and -.",
        ),
        (
            "events.post",
            {"level": "info", "subject": "x", "eventTags": {"a": "b", "c": 1}},
            "eventTags.c: is 1; give a string of 1 to 255 characters.",
        ),
        (
            "events.post",
            {"level": "info", "subject": "x", "eventTags": {f"k{n}": "x" for n in range(112)}},
            "eventTags: has 112 keys; give an object of at most 100 keys.",
        ),
        (
            "experienceVersions.post",
            {"version": "v1", "responseHeaders": {"X": 1}},
            "responseHeaders.X: is 1; give a string of 1 to 1024 characters.",
        ),
        (
            "dashboard.validateContext",
            {"a": "x", "ctx": {"n": 0}},
            "ctx.n: there is no such field in this body; it takes key, value.",
        ),
        (
            "device.sendState",
            {"data": {}, "time": {"$date": 5}},
            "time: does not fit; give ISO 8601 text such as 2024-05-01T12:00:00.000Z (also as ",
        ),
        (
            "device.sendState",
            {"data": {}, "time": {"date": "x"}},
            "time: does not fit; give ISO 8601 text such as 2024-05-01T12:00:00.000Z (also as ",
        ),
        (
            "dataTableRows.post",
            b'{"m": 1, "n": 1e400}',
            "n: is out of range; give a number from -1.7e308 to 1.7e308.",
        ),
        (
            "device.sendState",
            b'{"data": {"a": 1, "b": [{"c": 1}, {"d": 1, "e": -1e400}]}}',
            "data.b[1].e: is out of range; give a number from -1.7e308 to 1.7e308.",
        ),
        (
            "auth.authenticateUser",
            {"username": "x"},
            "username: there is no such field in this body (did you mean",
        ),
        ("auth.authenticateUser", {"email": "x"}, "email: does not fit; give an e-mail address such as "),
        (
            "auth.authenticateUser",
            {"email": "a@b\0c"},
            "email: does not fit; give an e-mail address such as ",
        ),
        (
            "auth.authenticateUser",
            {"email": "a\x7f@b"},
            "email: does not fit; give an e-mail address such as ",
        ),
    ],
)
def test_the_sentence_of_a_wrong_body(operation: str, body: Any, expected: str) -> None:
    assert sentence(operation, body).startswith(expected)


@pytest.mark.parametrize(
    ("operation", "needed"),
    [
        ("events.post", "an object with level, subject"),
        ("event.patch", "an object with any of state, level, subject, deviceId, comment, data, eventTags"),
        ("device.sendState", "an object with data or an array"),
        ("device.setConnectionStatus", "an object with status"),
        ("events.delete", "an object"),
    ],
)
def test_a_missing_body_is_refused_with_the_body_that_is_needed(operation: str, needed: str) -> None:
    expected = f"The body is missing; this call needs JSON: {needed} (Content-Type: application/json)."
    assert sentence(operation, b"") == expected


def test_a_text_that_may_be_a_secret_is_not_shown() -> None:
    login = {"email": "a@b.example", "password": "hidden" * 400}
    assert "hidden" not in sentence("auth.authenticateUser", login)
    assert "hidden" not in sentence("auth.authenticateUser", {**login, "password": ["hidden"]})
    assert "hidden" not in sentence("auth.authenticateUser", {**login, "requestedScopes": "hidden"})
    assert "hidden" not in sentence("auth.authenticateUser", json.dumps(login))
    assert "hidden" not in sentence("me.patch", {"password": "hidden"})


def test_every_type_with_a_pattern_says_in_words_what_it_is() -> None:
    for route in TABLE.routes:
        types = [inspect.type_info(route.query)]
        types += [] if route.decoder is None else [inspect.type_info(route.decoder.type)]
        for each in types:
            for text in _texts(each):
                assert text.pattern is None, (route.operation, text.pattern)


def _texts(type: inspect.Type) -> Iterator[inspect.StrType]:
    """The texts in a type that have no form in words."""
    match type:
        case inspect.Metadata() if not (type.extra and FORM in type.extra):
            yield from _texts(type.type)
        case inspect.StrType():
            yield type
        case inspect.UnionType():
            for part in type.types:
                yield from _texts(part)
        case inspect.ListType():
            yield from _texts(type.item_type)
        case inspect.DictType():
            yield from _texts(type.key_type)
            yield from _texts(type.value_type)
        case inspect.StructType():
            for field in type.fields:
                yield from _texts(field.type)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2000) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.data(), st.sampled_from(BODIES))
def test_no_sentence_has_words_of_python(data: st.DataObject, route: Route) -> None:
    """Also where a name of the body is right and its value is not."""
    assert route.decoder is not None
    names = re.findall(r"it takes ([^;]*)\.$", _refusal(route, {"\u2603": 1}))
    known = st.sampled_from(names[0].split(", ")) if names else st.just("name")
    body = data.draw(st.dictionaries(known, _JSON, max_size=3) | _JSON)
    found = PYTHON_WORDS.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", _refusal(route, body)))
    assert found is None, (route.operation, body, _refusal(route, body))


def _refusal(route: Route, body: Any) -> str:
    try:
        decode(route.decoder, json.dumps(body).encode())  # type: ignore[arg-type]
    except Invalid as refused:
        return refused.message
    return ""
