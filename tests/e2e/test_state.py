"""States over HTTP: every form of a time, every refusal in a sentence, and the ways to read them back."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.actors.house import START_MS, ManualClock, at
from tests.e2e.conftest import Server

DAY_MS = 86_400_000


@pytest.fixture
async def clocked(start_server: Any) -> Any:
    """A server whose clock stands still, without throttles."""
    async with start_server(
        clock=ManualClock(), limits={"send_state": "off", "send_command": "off"}
    ) as running:
        yield running


TIMES: list[tuple[Any, int]] = [
    ({"$date": "2024-05-01T11:59:59.250Z"}, -750),
    ({"$date": "2024-05-01T13:59:59.250+02:00"}, -750),
    ("2024-05-01T12:00:00.001Z", 1),
    ("2024-05-01T12:00:00.0019999Z", 1),
    ("2024-05-01T12:00Z", 0),
    ("2024-05-01 11:00:00", -3_600_000),
    ("2024-05-01", -43_200_000),
    (START_MS, 0),
    (START_MS - 1, -1),
    (str(START_MS + 7), 7),
    (START_MS // 1000, 0),
    (START_MS / 1000 - 0.004, -4),
    (1_000_000_000, 1_000_000_000_000 - START_MS),
    (0, -START_MS),
    (-1, -1),
    (-86_400_000, -86_400_000),
    (None, 8),
    (START_MS + DAY_MS, DAY_MS),
    (None, 9),
]


async def test_every_form_of_a_time(clocked: Server) -> None:
    device = await clocked.device(await clocked.application())
    for number, (time, offset_ms) in enumerate(TIMES):
        report = {"data": {"temp": number}, **({} if time is None else {"time": time})}
        await clocked.call("POST", f"{device}/state", report)
        exactly = f"start={START_MS + offset_ms or 1}&end={START_MS + offset_ms or 1}"
        if START_MS + offset_ms:
            (state,) = await clocked.call("GET", f"{device}/state?{exactly}")
            assert state == {"time": at(offset_ms), "data": {"temp": number}}, time
    (first,) = await clocked.call("GET", f"{device}/state?sortDirection=asc")
    assert first["time"] == "1970-01-01T00:00:00.000Z"


REFUSED: list[tuple[Any, str]] = [
    (
        {"data": {"temp": 1}, "time": START_MS + DAY_MS + 1},
        "time: 2024-05-02T12:00:00.001Z lies more than a day",
    ),
    ({"data": {"temp": 1}, "time": "soon"}, "time: 'soon' is not"),
    ({"data": {"temp": 1}, "time": "2024-02-30"}, "time: '2024-02-30' is not a valid date and time"),
    ({"data": {"temp": 1}, "time": {"$date": "x"}}, "time: "),
    ({"data": {"temp": 1}, "time": {"date": "2024-05-01"}}, "time"),
    ({"data": {"temp": 1}, "time": {}}, "time: "),
    ({"data": {"temp": 1}, "time": True}, "time: "),
    ({"data": {"temp": 1}, "time": [1]}, "time: "),
    ({"data": {"temp": 1}, "time": 10**30}, "time: "),
    ({"data": {"temp": 1}, "time": -(10**30)}, "time: "),
    ({"data": {"temp": "warm"}}, "data.temp: 'warm' is not a number"),
    ({"data": {"temp": None}}, "data.temp: null is not a number"),
    ({"data": {"temp": [1]}}, "data.temp: an array is not a number"),
    ({"data": {"temp": {"value": 1}}}, "data.temp: an object is not a number"),
    ({"data": {"temp": 10**309}}, "data.temp: the number is larger than a double can hold"),
    ({"data": {"on": 2}}, "data.on: 2 is not a boolean"),
    ({"data": {"on": "maybe"}}, "data.on: 'maybe' is not a boolean"),
    ({"data": {"label": None}}, "data.label: null is not text"),
    ({"data": {"label": "x" * 65_537}}, "data.label: the text has 65537 bytes"),
    ({"data": {"label": "é" * 32_769}}, "data.label: the text has 65538 bytes"),
    ({"data": {"temp": 1, "tmp": 1}}, "data.tmp: the device declares no such attribute (declared: temp"),
    ({"data": {"": 1}}, "data.: the device declares no such attribute"),
    ({"data": {}}, "data: is empty"),
    ({"data": []}, "data: is an array; give an object"),
    ({"data": None}, "data: is null; give an object"),
    ({}, "data: is missing"),
    ({"data": {"temp": 1}, "flowVersion": ""}, "flowVersion: "),
    ({"data": {"temp": 1}, "flowVersion": 5}, "flowVersion: "),
    ({"data": {"temp": 1}, "colour": "red"}, "colour: there is no such field"),
    ([{"data": {"temp": 1}}, {"data": {"temp": 1}, "time": "soon"}], "[1].time: "),
    ([{"data": {"temp": 1}}, {"data": {"temp": "x"}}], "[1].data.temp: "),
    ([{"data": {"temp": 1}}, {"data": {"tmp": 1}}], "[1].data.tmp: "),
    ([{"data": {"temp": 1}}, {"data": {"temp": 1}, "time": START_MS + DAY_MS + 1}], "[1].time: "),
    ([{"data": {"temp": 1}}, {}], "[1].data: is missing"),
    ([{"data": {"temp": 1}}, 5], "[1]: "),
    (5, "The body: "),
    ("x", "The body: "),
]


async def test_what_can_not_be_stored_is_refused_by_the_name_of_its_field(clocked: Server) -> None:
    device = await clocked.device(await clocked.application())
    async with clocked.client() as client:
        for body, sentence in REFUSED:
            refused = await client.post(f"{device}/state", json=body)
            assert refused.status_code == 400, (body, refused.text)
            assert refused.json()["type"] == "Validation"
            message = refused.json()["message"]
            assert message.startswith(sentence), message
            assert len(message) < 400
    assert await clocked.call("GET", f"{device}/state?limit=1000") == [], "nothing of any call was stored"
    assert await clocked.call("GET", f"{device}/compositeState") == {}


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


NOT_JSON: list[tuple[bytes, int]] = [
    (b"", 400),
    (b"{", 400),
    (b'{"data":{"temp":NaN}}', 400),
    (b'{"data":{"temp":Infinity}}', 400),
    (b'{"data":{"temp":1e999}}', 400),
    (b'{"data":{"temp":-1e999}}', 400),
    (b'{"data":{"temp":' + b"9" * 400 + b"}}", 400),
    (b'{"data":{"temp":' + b"9" * 5000 + b"}}", 400),
    (b'{"data":{"temp":1},"time":1e999}', 400),
    (b'{"data":{"temp":1},"time":' + b"9" * 5000 + b"}", 400),
    (b'{"data":{"temp":1},"meta":1e999}', 400),
    (b'{"data":{"label":"\\ud800"}}', 400),
    (b'{"data":{"label":"\\udc00x"}}', 400),
    (b'{"data":{"label":"\xed\xa0\x80"}}', 400),
    (b'{"data":{"label":"\xff"}}', 400),
    (b'{"data":{"\xff":1}}', 400),
    (b'{"data":{"label":"\x01"}}', 400),
    (b'{"data":{"temp":1},"meta":' + deep(101) + b"}", 400),
    (b'{"data":{"temp":1},"meta":' + deep(450) + b"}", 400),
    (b'{"data":{"temp":1},"meta":' + deep(990) + b"}", 400),
    (b'{"data":{"temp":1},"meta":' + deep(200_000) + b"}", 413),
    (b'{"data":{"temp":' + deep(500) + b"}}", 400),
    (deep(100_000), 400),
    (b'{"data":{"temp":1}} x', 400),
    (b'{"data":{"temp":01}}', 400),
    (b'{"data":{"label":"' + b"x" * (1 << 20) + b'"}}', 413),
    # These are fine, though odd.
    (b'\n {"data":{"temp":1,"temp":2}}', 200),
    (b'{"data":{"label":"\\ud83d\\ude00\\u0000"}}', 200),
    (b'{"data":{"temp":18446744073709551616}}', 200),
    (b'{"data":{"temp":1e308}}', 200),
    (b'{"data":{"temp":1},"meta":' + deep(100) + b"}", 200),
    (b'{"data":{"temp":1},"meta":' + b"9" * 4000 + b"}", 200),
    (b"[]", 200),
]


async def test_no_bytes_make_the_server_fail(clocked: Server) -> None:
    """A hostile or broken body is a 4xx with a sentence; what is taken can be read back."""
    device = await clocked.device(await clocked.application())
    async with clocked.client() as client:
        for body, status in NOT_JSON:
            sent = await client.post(
                f"{device}/state", content=body, headers={"Content-Type": "application/json"}
            )
            assert sent.status_code == status, (body[:80], sent.status_code, sent.text[:300])
            assert len(sent.text) < 600
            assert (await client.get(f"{device}/state?limit=1000")).status_code == 200, body[:80]
        plain = await client.post(f"{device}/state", content=b"{}", headers={"Content-Type": "text/plain"})
        assert plain.status_code == 415
        assert plain.json()["type"] == "UnsupportedMediaType"
    states = await clocked.call("GET", f"{device}/state?limit=1000")
    taken = [
        {"temp": 1},
        {"temp": 1},
        {"temp": 1e308},
        {"temp": 18446744073709551616},
        {"label": "😀\x00"},
        {"temp": 2},
    ]
    assert [state["data"] for state in states] == taken


async def test_values_are_coerced_where_nothing_is_lost(clocked: Server) -> None:
    device = await clocked.device(await clocked.application())
    for sent, kept in (
        ({"temp": "5"}, {"temp": 5}),
        ({"temp": " 5.25 "}, {"temp": 5.25}),
        ({"temp": True}, {"temp": 1}),
        ({"on": 1}, {"on": True}),
        ({"on": "false"}, {"on": False}),
        ({"label": 5}, {"label": "5"}),
        ({"label": False}, {"label": "false"}),
        ({"label": "é" * 32_768}, {"label": "é" * 32_768}),
    ):
        await clocked.call("POST", f"{device}/state", {"data": sent, "time": -5})
        (state,) = await clocked.call("GET", f"{device}/state?end=0")
        ((name, value),) = kept.items()
        assert state["data"][name] == value
        assert type(state["data"][name]) is type(value)


async def test_meta_and_flow_version_come_back(clocked: Server) -> None:
    device = await clocked.device(await clocked.application())
    metas: list[Any] = [{"by": ["robot", {"n": None}]}, "text", 0, False, None, []]
    for meta in metas:
        body = {"data": {"temp": 1}, "time": -1, "meta": meta, "flowVersion": "v1"}
        await clocked.call("POST", f"{device}/state", body)
        (state,) = await clocked.call("GET", f"{device}/state")
        assert (state["meta"], state["flowVersion"]) == (meta, "v1")
    await clocked.call("POST", f"{device}/state", {"data": {"temp": 2}})
    (state,) = await clocked.call("GET", f"{device}/state")
    assert state == {"time": at(0), "data": {"temp": 2}}


@pytest.mark.slow
async def test_an_array_is_stored_whole_or_not_at_all(clocked: Server) -> None:
    device = await clocked.device(await clocked.application())
    many = [{"data": {"temp": n}, "time": START_MS - 10_000 + n} for n in range(10_000)]
    await clocked.call("POST", f"{device}/state", many)
    one_more = await clocked.call("POST", f"{device}/state", [*many, many[0]], status=413)
    assert one_more["message"].startswith("10001 states in one call; send at most 10000 a call")
    found = await clocked.call("GET", f"{device}/state?limit=1000&sortDirection=asc")
    assert [state["data"]["temp"] for state in found] == list(range(1000))
    assert (await clocked.call("GET", f"{device}/compositeState"))["temp"] == {"value": 9999, "time": at(-1)}
    assert (await clocked.call("GET", f"{device}/payloadCounts"))["deviceState"] == 10_000


# -- reading -------------------------------------------------------------------------------------------------

WINDOWS: list[tuple[str, list[int]]] = [
    ("", [-1]),
    ("limit=3", [-1, -2, -3]),
    ("limit=3&sortDirection=asc", [-10, -9, -8]),
    (f"start={START_MS - 3}&limit=9", [-1, -2, -3]),
    (f"end={START_MS - 8}&limit=9", [-8, -9, -10]),
    (f"start={START_MS - 5}&end={START_MS - 4}&limit=9", [-4, -5]),
    ("start=-3&limit=9", [-1, -2, -3]),
    ("end=-9&limit=9", [-9, -10]),
    ("start=-4&end=0&limit=9", [-1, -2, -3, -4]),
    ("start=0&limit=9", []),
    ("start=1&end=0&limit=2", [-1, -2]),
    (f"since={START_MS - 3}&limit=9", [-1, -2]),
    ("since=-3&limit=9&sortDirection=asc", [-2, -1]),
    ("duration=2&limit=9", [-1, -2]),
    ("duration=2&end=-5&limit=9", [-5, -6, -7]),
    (f"duration=3&end={START_MS - 1}&limit=9&start=1", [-1, -2, -3, -4]),
    ("duration=0", []),
    ("start=-1&end=-5", []),
    ("start=&end=&duration=&since=", [-1]),
]


async def test_windows_of_the_history(clocked: Server) -> None:
    device = await clocked.device(await clocked.application())
    states = [{"data": {"temp": n}, "time": START_MS + n} for n in range(-10, 0)]
    await clocked.call("POST", f"{device}/state", states)
    for query, expected in WINDOWS:
        found = await clocked.call("GET", f"{device}/state?{query}")
        assert [state["data"]["temp"] for state in found] == expected, query


async def test_a_wrong_window_is_refused_by_the_name_of_its_parameter(clocked: Server) -> None:
    device = await clocked.device(await clocked.application())
    for resource in ("state", "command", "logs"):
        for query, sentence in (
            ("limit=0", "limit: "),
            ("limit=1001", "limit: "),
            ("limit=x", "limit: "),
            ("start=yesterday", "start: "),
            (f"start={10**20}", "start: "),
            (f"end={'9' * 5000}", "end: "),
            ("duration=-1", "duration: "),
            (f"end=0&duration={10**20}", "duration: "),
            ("sortDirection=sideways", "sortDirection: "),
            ("colour=red", "colour: "),
        ):
            refused = await clocked.call("GET", f"{device}/{resource}?{query}", status=400)
            assert refused["message"].startswith(sentence), (query, refused["message"])
        for query in (f"start={-(10**20)}", f"since={-(10**20)}", f"duration={10**20}", "duration=inf"):
            assert await clocked.call("GET", f"{device}/{resource}?{query}") == []


async def test_the_composite_state_is_the_newest_value_of_each_attribute(clocked: Server) -> None:
    application = await clocked.application()
    device = await clocked.device(application)
    states = [
        {"data": {"temp": 1, "label": "old"}, "time": START_MS - 100},
        {"data": {"temp": 2}, "time": START_MS - 50},
        {"data": {"on": True}, "time": START_MS + 1000},
    ]
    await clocked.call("POST", f"{device}/state", states)
    temp, on = {"value": 2, "time": at(-50)}, {"value": True, "time": at(1000)}
    label = {"value": "old", "time": at(-100)}
    for query, expected in (
        ("", {"temp": temp, "label": label, "on": on}),
        ("attributes=temp", {"temp": temp}),
        ("attributes=label,%20temp,,nothing", {"temp": temp, "label": label}),
        ("attributes=", {"temp": temp, "label": label, "on": on}),
        (f"end={START_MS - 51}", {"temp": {"value": 1, "time": at(-100)}, "label": label}),
        (f"start={START_MS - 99}", {"temp": temp, "on": on}),
        ("start=-60&end=-40", {"temp": temp}),
        ("end=-200", {}),
    ):
        assert await clocked.call("GET", f"{device}/compositeState?{query}") == expected, query
    listed = await clocked.call("GET", f"{application}/devices/compositeState?attributes=temp")
    assert listed["items"] == [
        {"id": device.rpartition("/")[2], "name": "pump", "compositeState": {"temp": temp}}
    ]
    assert (listed["count"], listed["totalCount"], listed["sortField"]) == (1, 1, "name")
    past = await clocked.call("GET", f"{application}/devices/compositeState?end={START_MS - 51}")
    assert past["items"][0]["compositeState"] == {"temp": {"value": 1, "time": at(-100)}, "label": label}


async def test_composite_states_are_paged_and_found_by_query(clocked: Server) -> None:
    application = await clocked.application()
    for number in range(5):
        device = await clocked.device(
            application, f"d{number}", tags=[{"key": "even", "value": str(number % 2)}]
        )
        await clocked.call("POST", f"{device}/state", {"data": {"temp": number}})
    even = quote(json.dumps({"tags": {"even": "0"}}))
    for query, expected in (
        ("sortDirection=desc&perPage=2", [4, 3]),
        ("sortDirection=desc&perPage=2&page=2", [0]),
        (f"query={even}", [0, 2, 4]),
    ):
        found = await clocked.call("GET", f"{application}/devices/compositeState?{query}")
        values = [each["compositeState"]["temp"]["value"] for each in found["items"]]
        assert values == expected
    assert found["query"] == {"tags": {"even": "0"}}


@pytest.mark.slow
async def test_who_saw_an_answer_sees_its_data(clocked: Server) -> None:
    """Each acknowledged state is there for the next reader, whoever that is."""
    device = await clocked.device(await clocked.application())
    async with clocked.client() as writer, clocked.client() as reader:
        for number in range(50):
            sent: httpx.Response = await writer.post(
                f"{device}/state", json={"data": {"temp": number}, "time": START_MS + number}
            )
            assert sent.json() == {"success": True}
            (state,) = (await reader.get(f"{device}/state")).json()
            composite = (await reader.get(f"{device}/compositeState")).json()
            assert (state["data"]["temp"], composite["temp"]["value"]) == (number, number)
