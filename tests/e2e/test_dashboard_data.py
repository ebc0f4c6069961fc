"""The data of dashboards: what their blocks show, with a token, and without one where the dashboard is public."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Server
from tests.e2e.test_dashboards import PASSWORD, other_user
from tests.e2e.test_reports import AT_MS, HOUR_MS, block, farm
from trunkline.actors.core.values.timestamps import TIMESTAMP_MS_MAX

Json = dict[str, Any]
StartServer = Callable[..., Any]
DAY_MS = 24 * HOUR_MS


async def made(server: Server, application: str, blocks: list[Json], **more: Any) -> str:
    """Create a dashboard of an application; its path by its id alone."""
    body = {"name": "d", "blocks": blocks, **more}
    return f"/dashboards/{(await server.call('POST', f'{application}/dashboards', body, status=201))['id']}"


async def parts(server: Server, path: str, body: Json | None = None, **call: Any) -> dict[str, list[Json]]:
    """What each block of a dashboard shows, by its title. Each block must have no problem."""
    answer = await server.call("POST", f"{path}/data", body, **call)
    assert [each for each in answer["blocks"] if "problem" in each] == []
    return {each["title"]: each["parts"] for each in answer["blocks"]}


async def problems(server: Server, path: str, **call: Any) -> dict[str, str]:
    """The blocks of a dashboard that cannot be shown, by title, each with the reason."""
    answer = await server.call("POST", f"{path}/data", **call)
    return {each["title"]: each["problem"] for each in answer["blocks"] if "problem" in each}


async def test_the_data_are_what_each_block_shows(server: Server) -> None:
    application, north = await farm(server)
    temp = {"attribute": "temp", "deviceIds": ["{{ctx.device}}"]}
    both = {"attribute": "temp"}
    column = {"type": "custom", "headerTemplate": "Room", "rowTemplate": "{{ctx.n}} {{device.name}}"}
    blocks = [
        block(0, "section-header", "Start", {"content": "# Two\nlines"}),
        block(1, "gauge", "Newest", {"segment": temp, "gaugeMin": 0, "gaugeMax": 50}),
        block(2, "graph", "Course", {"segments": [{**both, "yAxisId": "a"}], "duration": DAY_MS}),
        block(3, "pie", "Shares", {"segments": [{**both, "label": "warm"}]}),
        block(4, "device-list", "Devices", {"filter": "north", "columns": [{"type": "name"}, column]}),
        block(10, "device-list", "Tagged", {"filter": {"tags": [{"key": "room"}]}}),
        block(5, "device-state-table", "States", {"attributes": ["temp"], "duration": DAY_MS}),
        block(6, "map", "Places", {"attribute": "label", "deviceIds": [north], "duration": 2 * HOUR_MS}),
        block(7, "image", "Picture", {"imageUrl": "data:image/png;base64,AAAA"}),
        block(8, "open-event-indicator", "Open", {}),
        {**block(9, "iframe", "", {"url": "https://example.com/"}), "id": "frame"},
    ]  # fmt: skip
    parameters = [
        {"name": "device", "type": "deviceId", "defaultValue": north},
        {"name": "n", "type": "number", "defaultValue": 7},
    ]
    path = await made(server, application, blocks, contextConfiguration=parameters)
    answer = await server.call("POST", f"{path}/data", {"end": AT_MS})
    shown = await server.call("GET", path)
    assert (answer["dashboardId"], answer["lastUpdated"]) == (shown["id"], shown["lastUpdated"])
    assert answer["time"] == "2023-11-14T22:13:20.000Z"
    assert [each["position"] for each in answer["blocks"]] == list(range(11))
    assert [each["blockType"] for each in answer["blocks"]] == [each["blockType"] for each in shown["blocks"]]
    found = {each["title"]: each["parts"] for each in answer["blocks"]}
    assert found["Start"] == [{"kind": "text", "text": "# Two\nlines"}]
    chart, value = found["Newest"]
    assert (chart["type"], chart["low"], chart["high"]) == ("gauge", 0.0, 50.0)
    at = "2023-11-14T22:13:20.000Z"
    assert value == {"kind": "value", "label": "temp, north <b>&</b>", "value": 20.5, "at": at}
    (graph,) = found["Course"]
    assert graph["span"] == [AT_MS - DAY_MS, AT_MS]
    assert [(line["label"], line["axis"], len(line["points"])) for line in graph["lines"]] == [
        ("temp, north <b>&</b>", "a", 24), ("temp, south", "a", 24),
    ]  # fmt: skip
    assert graph["lines"][0]["points"][-1] == [AT_MS, 20.5]
    pie, table = found["Shares"]
    assert pie["categories"] == ["warm, north <b>&</b>", "warm, south"]
    assert table["rows"][0][2]["kind"] == "share"
    assert table["rows"][1][3] == {"kind": "time", "time": at}
    (devices,) = found["Devices"]
    assert (devices["columns"], devices["rows"]) == (
        ["Name", "Room"],
        [["north <b>&</b>", "7 north <b>&</b>"]],
    )
    assert [row[0] for row in found["Tagged"][0]["rows"]] == ["north <b>&</b>"]
    assert (devices["of"], devices["ids"]) == ("device", [north])
    (states,) = found["States"]
    assert (states["of"], states["ids"][0], len(states["ids"])) == ("device", north, len(states["rows"]))
    assert states["rows"][0] == ["north <b>&</b>", {"kind": "time", "time": at}, 20.5]
    assert states["total"] == 48
    places, _ = found["Places"]
    assert (places["type"], places["lines"][0]["points"][-1]) == ("map", [9.25, 48.0])
    assert found["Picture"] == [{"kind": "address", "label": "Picture", "url": "data:image/png;base64,AAAA"}]
    assert found["Open"][0] == {"kind": "value", "label": "open", "value": 0, "at": None}
    assert found[""][0]["url"] == "https://example.com/"
    # Some blocks, another range, and another value of a parameter.
    some = await server.call("POST", f"{path}/data", {"blockIds": ["frame"]})
    assert [(each["position"], each["id"]) for each in some["blocks"]] == [(10, "frame")]
    under = f"{application}{path}/data"
    again = await server.call("POST", under, {"end": AT_MS, "ctx": {"n": 8}})
    assert again["blocks"][4]["parts"][0]["rows"][0][1] == "8 north <b>&</b>"


async def test_expressions_conditions_and_row_templates_are_evaluated(server: Server) -> None:
    application, north = await farm(server)
    temp = {"attribute": "temp", "deviceIds": [north], "expression": "{{value}} * 2 + {{ctx.n}}"}
    label = "{{format value-0 '.2f'}} & **hot** {{ctx.n}}"
    warm = {"condition": "{{value-0}} > 40 && {{value-1}} == true", "color": "red", "label": label}
    full = {**warm, "condition": "{{value-0.count}} == 2", "label": ""}
    cold = {**warm, "condition": "{{value}} < 43", "color": "#00ff00", "label": "cold {{value}}"}
    usual = {"color": "#00ff00", "label": "fine {{value}}"}
    template = "{{#if (eq device.name 'south')}}S{{else}}{{device.name}}{{/if}}"
    columns = [{"type": "custom", "headerTemplate": "h", "rowTemplate": template}]
    state = {"type": "attribute", "attribute": "temp", "rowTemplate": "{{upper deviceName}} {{value}}"}
    both = [temp, {"attribute": "on", "deviceIds": [north]}]
    blocks = [
        block(0, "graph", "graph", {"segments": [temp], "duration": DAY_MS}),
        block(1, "gauge", "gauge", {"segment": temp, "gaugeMin": 0, "gaugeMax": 99, "conditions": [warm, cold]}),
        block(2, "indicator", "hot", {"segments": both, "conditions": [{"condition": ""}, warm, cold]}),
        block(3, "indicator", "usual", {"segments": [temp], "conditions": [warm], "defaultCondition": usual}),
        block(6, "device-count", "count", {"segments": [{"id": "a", "query": "{}"}], "conditions": [full]}),
        block(4, "device-list", "list", {"columns": columns, "sortField": "name"}),
        block(5, "device-state-table", "states", {"columns": [state]}),
    ]  # fmt: skip
    number = {"name": "n", "type": "number", "defaultValue": 1}
    path = await made(server, application, blocks, contextConfiguration=[number])
    found = await parts(server, path, {"end": AT_MS})
    assert found["graph"][0]["lines"][0]["points"][-1] == [AT_MS, 42.0]
    chart, status, value = found["gauge"]
    assert (chart["lines"][0]["color"], status, value["value"]) == (
        "#00ff00", {"kind": "status", "text": "cold 42", "color": "#00ff00"}, 42,
    )  # fmt: skip
    assert found["usual"][0] == {"kind": "status", "text": "fine 42", "color": "#00ff00"}
    status, _ = found["hot"]
    assert status == {"kind": "status", "text": "42.00 & **hot** 1", "color": "red"}
    assert found["count"][0] == {"kind": "status", "text": "", "color": "red"}
    assert found["list"][0]["rows"] == [["north <b>&</b>"], ["S"]]
    assert found["states"][0]["rows"] == [["NORTH <B>&</B> 20.5"], ["SOUTH 1020.5"]]
    broken = {"segments": [{**temp, "expression": "{{value}} +"}]}
    path = await made(
        server, application, [block(0, "bar", "b", broken), block(1, "gauge", "g", {"segment": temp})]
    )
    said = await problems(server, path)
    assert said.keys() == {"b"}
    assert said["b"].startswith("'{{value}} +' cannot be computed: ")


async def test_a_range_of_the_caller_replaces_that_of_the_dashboard(server: Server) -> None:
    application, _ = await farm(server)
    graph = {"segments": [{"attribute": "temp", "aggregation": "COUNT"}]}
    path = await made(
        server, application, [block(0, "graph", "g", graph)], duration=DAY_MS, resolution=HOUR_MS
    )
    for body, count in (({}, 24), ({"duration": 6 * HOUR_MS}, 6), ({"resolution": 12 * HOUR_MS}, 2)):
        (chart,) = (await parts(server, path, {"end": AT_MS, **body}))["g"]
        assert len(chart["lines"][0]["points"]) in (count, count + 1), body
        assert sum(value for _, value in chart["lines"][0]["points"]) == min(24, 2 * count + 12) or body != {}


async def test_a_raw_series_is_downsampled(start_server: StartServer) -> None:
    async with start_server(limits={"dashboard_line_points_max": 50, "dashboard_rows_max": 5}) as server:
        application = await server.application()
        device = await server.device(application)
        states: list[Json] = [
            {"time": AT_MS - n * 1000, "data": {"temp": math.sin(n / 50)}} for n in range(999)
        ]
        states[500]["data"]["temp"] = 99.5
        await server.call("POST", f"{device}/state", states)
        segment = {"attribute": "temp"}
        blocks = [
            block(0, "graph", "raw", {"segments": [segment], "duration": HOUR_MS}),
            block(1, "graph", "sum", {"segments": [{**segment, "cumulative": True}], "duration": HOUR_MS}),
            block(2, "device-state-table", "table", {"attributes": ["temp"], "duration": HOUR_MS}),
        ]
        path = await made(server, application, blocks)
        found = await parts(server, path, {"end": AT_MS})
        ((line,),) = ([*chart["lines"]] for chart in found["raw"])
        assert len(line["points"]) == 50
        assert max(value for _, value in line["points"]) == 99.5
        assert line["points"][-1] == [AT_MS, 0.0]
        ((line,),) = ([*chart["lines"]] for chart in found["sum"])
        assert len(line["points"]) <= 50
        (table,) = found["table"]
        assert [row[2] for row in table["rows"]] == [math.sin(n / 50) for n in range(5)]
        assert table["total"] == 6


async def test_without_a_token_only_a_public_dashboard_shows_its_data(server: Server) -> None:
    application, north = await farm(server)
    value = {"segment": {"attribute": "temp", "deviceIds": [north]}}
    blocks = [block(0, "gauge", "g", value), block(1, "device-list", "list", {})]
    path = await made(server, application, blocks)
    under = f"{application}{path}/data"
    await server.call("POST", f"{path}/data", token="", status=404)
    await server.call("POST", under, token="", status=401)
    token = await other_user(server)
    await server.call("POST", f"{path}/data", token=token, status=403)
    await server.call("POST", under, token=token, status=403)
    await server.call("PATCH", path, {"public": True})
    shown = await parts(server, path, token="")
    whole = await parts(server, path)
    assert shown["g"] == whole["g"]
    (listed,), (with_ids,) = shown["list"], whole["list"]
    ids = {"of": with_ids.pop("of"), "ids": with_ids.pop("ids")}
    assert (listed, ids["of"], ids["ids"][0]) == (with_ids, "device", north)
    assert [each["value"] for each in shown["g"]] == [-999]
    await server.call("POST", under, token="", status=401)
    await server.call("POST", f"{path}/data", token=token, status=403)
    await server.call("PATCH", path, {"password": PASSWORD})
    for query in ("", "?password=", "?password=wrong"):
        await server.call("POST", f"{path}/data{query}", token="", status=401)
    for _ in range(2):  # the second time the password is remembered
        assert await parts(server, f"{path}", token="", params={"password": PASSWORD}) == shown
    await server.call("PATCH", path, {"password": "Another-horse-8"})
    await server.call("POST", f"{path}/data", token="", params={"password": PASSWORD}, status=401)
    await server.call("PATCH", path, {"public": False})
    await server.call("POST", f"{path}/data?password=Another-horse-8", token="", status=404)


async def test_a_reader_without_a_token_cannot_change_what_is_shown(server: Server) -> None:
    application, north = await farm(server)
    south = (await server.call("GET", f"{application}/devices?filterField=name&filter=south"))["items"][0][
        "id"
    ]
    secret = await server.device(application, "secret", tags=[{"key": "room", "value": "2"}])
    at = {"time": AT_MS + HOUR_MS, "data": {"temp": 4711}}
    await server.call("POST", f"{secret}/state", at)
    query = '{"tags": {"room": "{{ctx.room}}"}}'
    blocks = [
        block(0, "gauge", "chosen", {"segment": {"attribute": "temp", "deviceIds": ["{{ctx.device}}"]}}),
        block(1, "indicator", "found", {"segments": [{"attribute": "temp", "query": query}]}),
        block(2, "gauge", "fixed", {"segment": {"attribute": "temp", "deviceIds": ["{{ctx.fixed}}"]}}),
    ]
    allowed = {"deviceIds": [north, south]}
    parameters = [
        {"name": "device", "type": "deviceId", "defaultValue": north, "validationEnabled": True,
         "validationConfig": allowed},
        {"name": "room", "type": "string", "defaultValue": "1", "validationEnabled": True},
        {"name": "fixed", "type": "deviceId", "defaultValue": north},
    ]  # fmt: skip
    path = await made(server, application, blocks, contextConfiguration=parameters, public=True)
    shown = await parts(server, path, token="")
    assert [shown[name][0]["label"] for name in ("chosen", "found", "fixed")] == [
        "temp, north <b>&</b>", "temp", "temp, north <b>&</b>",
    ]  # fmt: skip
    chosen = await parts(server, path, {"ctx": {"device": south, "unknown": 1}}, token="")
    assert chosen["chosen"][0]["label"] == "temp, south"
    secret_id = secret.rpartition("/")[2]
    for body, said in (
        ({"ctx": {"device": secret_id}}, "ctx.device: the device"),
        ({"ctx": {"fixed": secret_id}}, "ctx.fixed: needs a token"),
        ({"ctx": {"fixed": north}}, "ctx.fixed: needs a token"),
        ({"duration": HOUR_MS}, "duration: needs a token"),
        ({"resolution": HOUR_MS}, "resolution: needs a token"),
        ({"end": AT_MS}, "end: needs a token"),
        ({"blockIds": ["x"]}, "blockIds[0]: the dashboard has no block with the id 'x'"),
    ):
        refusal = await server.call("POST", f"{path}/data", body, token="", status=400)
        assert refusal["message"].startswith(said), (body, refusal)
    # A text cannot leave the place in the query in which it stands.
    for text in ('2"}, "$nor": [{"name": "x"}], "tags": {"room": "2', '2"}}', "\\", "{{ctx.device}}"):
        answer = await server.call("POST", f"{path}/data", {"ctx": {"room": text}}, token="")
        found = answer["blocks"][1]
        assert (found["parts"], found.get("problem")) == ([{"kind": "text", "text": "No data."}], None), text


async def test_a_block_shows_only_what_its_reader_reaches(server: Server) -> None:
    own, _ = await farm(server)
    other = await server.application("other")
    application = own.rpartition("/")[2]
    gauge = {"segment": {"attribute": "temp"}}
    blocks = [
        {**block(0, "indicator", "own", {"segments": [gauge["segment"]]}), "applicationId": application},
        {**block(1, "device-list", "other", {}), "applicationId": other.rpartition("/")[2]},
        block(2, "gauge", "none", gauge),
    ]
    board = await server.call(
        "POST", "/dashboards", {"name": "d", "blocks": blocks, "public": True}, status=201
    )
    path = f"/dashboards/{board['id']}"
    for token in ("", None):
        assert await problems(server, path, token=token) == {"none": "The block names no application."}
    # What its owner loses is lost for everybody at once, although the answer is kept.
    await server.call("DELETE", other)
    said = await problems(server, path, token="")
    assert said["other"] == "The owner of the dashboard does not reach the application of this block."
    assert "There is no application" in (await problems(server, path))["other"]


async def test_answers_without_a_token_are_kept_and_bounded(start_server: StartServer) -> None:
    limits = {"public_dashboard_data": {"calls": 2, "window_s": 60}, "public_answers_bytes_max": 1000}
    async with start_server(limits=limits) as server:
        application = await server.application()
        device = await server.device(application)
        gauge = block(0, "gauge", "g", {"segment": {"attribute": "temp"}})
        number = {"name": "n", "type": "number", "defaultValue": 1, "validationEnabled": True}
        path = await made(
            server, application, [gauge], public=True, refreshRate=30, contextConfiguration=[number]
        )

        async def value(**call: Any) -> Any:
            return (await parts(server, path, **call))["g"][0].get("value")

        await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
        assert await value(token="") == 1
        await server.call("POST", f"{device}/state", {"data": {"temp": 2}})
        assert [await value(token=""), await value()] == [1, 2]
        server.move_clock(31)
        assert await value(token="") == 2
        body = {"ctx": {"n": 2}}
        refused = await server.call("POST", f"{path}/data", body, token="", status=429)
        assert "Too many answers were made" in refused["message"]
        assert await value(token="") == 2  # it is kept
        server.move_clock(60)
        both = {**gauge, "id": "second", "title": "h", "startY": 1}
        await server.call("PATCH", path, {"blocks": [gauge, both]})
        some = await server.call("POST", f"{path}/data", {"blockIds": ["second"]}, token="")
        assert [each["position"] for each in some["blocks"]] == [1]
        await server.call("POST", f"{path}/data", body)
        server.move_clock(60)
        for n in range(2):
            await server.call("POST", f"{path}/data", {"ctx": {"n": n}}, token="")


async def test_what_takes_too_long_or_is_too_large_is_left_out(start_server: StartServer) -> None:
    text = block(0, "section-header", "a", {"content": "x" * 2000})
    blocks = [text, {**text, "title": "b", "startY": 1}]
    for limits, left in (
        ({"dashboard_data_bytes_max": 2500}, {"b": "The answer would be too large"}),
        (
            {"dashboard_data_s": 1e-9},
            {"a": "The blocks above took too long", "b": "The blocks above took too"},
        ),
    ):
        async with start_server(limits=limits) as server:
            path = await made(server, await server.application(), blocks)
            said = await problems(server, path)
            assert said.keys() == left.keys()
            assert all(said[name].startswith(text) for name, text in left.items())


async def test_the_longest_range_can_be_read_and_a_longer_one_is_not_stored(server: Server) -> None:
    application, _ = await farm(server)
    most = TIMESTAMP_MS_MAX
    blocks = [
        block(0, "graph", "own", {"segments": [{"attribute": "temp"}], "duration": most, "resolution": most}),
        block(2, "graph", "of all", {"segments": [{"attribute": "temp"}]}),
        block(
            4, "gauge", "mean", {"segment": {"attribute": "temp", "aggregation": "MEAN"}, "duration": most}
        ),
        block(6, "map", "places", {"attribute": "temp", "duration": most}),
    ]
    path = await made(server, application, blocks, duration=most, resolution=most)
    shown = await parts(server, path, {"end": AT_MS})
    assert all("kind" in each[0] for each in shown.values())
    await parts(server, path, {"duration": most, "resolution": most})
    longer = block(0, "graph", "own", {"segments": [{"attribute": "temp"}], "duration": most + 1})
    for call, body, said in (
        ("PATCH", {"blocks": [longer]}, "blocks[0].config.duration: "),
        ("PATCH", {"duration": most + 1}, "duration: "),
        ("PATCH", {"resolution": most + 1}, "resolution: "),
    ):
        refusal = await server.call(call, path, body, status=400)
        assert refusal["message"].startswith(said), refusal
    refusal = await server.call("POST", f"{path}/data", {"duration": most + 1}, status=400)
    assert refusal["message"].startswith("duration: ")


async def test_wrong_values_are_400(server: Server) -> None:
    number = {"name": "n", "type": "number", "defaultValue": 1}
    path = await made(server, await server.application(), [], contextConfiguration=[number])
    bodies: list[tuple[Any, str]] = [
        ({"blockIds": []}, "blockIds: "),
        ({"ctx": {"n": "many"}}, "ctx.n: 'many' is not a number"),
        ({"duration": 0}, "duration: "),
        ({"end": "yesterday"}, "end: "),
        ({"start": 1}, "start"),
    ]
    for body, said in bodies:
        refusal = await server.call("POST", f"{path}/data", body, status=400)
        assert said in refusal["message"], (body, refusal)
    assert (await server.call("POST", f"{path}/data"))["blocks"] == []


@pytest.mark.parametrize("query", ["[]", "5", "{", '{"temp": 1}'])
async def test_a_query_that_a_parameter_makes_wrong_is_said_in_the_block(server: Server, query: str) -> None:
    application, _ = await farm(server)
    counts = {"segments": [{"id": "all", "query": "{{ctx.q}}"}]}
    parameter = {"name": "q", "type": "string", "defaultValue": query}
    path = await made(
        server, application, [block(0, "device-count", "c", counts)], contextConfiguration=[parameter]
    )
    answer = await server.call("POST", f"{path}/data")
    assert "fault is logged" not in answer["blocks"][0].get("problem", "")
