"""Devices made from a recipe and a CSV: at once and as a job, with wrong lines, with keys, and with a kill between."""

from __future__ import annotations

import csv
import io
from typing import Any

import httpx

from tests.e2e.conftest import Server
from tests.e2e.device_calls import id_of, names
from tests.e2e.rows import UNKNOWN, api_token
from tests.e2e.test_exports import ended
from tests.e2e.test_mandates import answer, api, press, save
from tests.e2e.test_roles import make_farm

RECIPE: dict[str, Any] = {
    "name": "thermometer",
    "deviceName": "meter",
    "description": "of the recipe",
    "deviceDescription": "of the device",
    "tags": [
        {"key": "floor", "value": "0"},
        {"key": "floor", "value": "00"},
        {"key": "kind", "value": "heat"},
    ],
    "attributes": [{"name": "temp", "dataType": "number", "description": "Celsius"}],
    "keepDuplicates": True,
}


async def recipe(server: Server, application: str, **fields: Any) -> str:
    made = await server.call("POST", f"{application}/device-recipes", {**RECIPE, **fields})
    return f"{application}/device-recipes/{made['id']}/bulkCreate"


def lines_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


async def test_each_line_is_a_device_with_its_own_fields(server: Server) -> None:
    application = await server.application()
    path = await recipe(server, application)
    text = (
        "\ufefflabel,floor,room,about\r\n"
        "north,1,hall,first\r\n"
        ",,,\r\n"
        '"a, ""b""",2,,\r\n'
        f"{'x' * 256},3,,\r\n"
        "\r\n"
        "short,4\r\n"
        'more,7,hall,"a ""b""",c,,d\r\n'
        f"long,{'y' * 256},,\r\n"
        "last,5,=1+1,\r\n"
    )
    body = {"csv": text, "nameColumn": "label", "descriptionColumn": "about"}
    done = await server.call("POST", path, body, status=201)
    assert (done["created"], done["failed"]) == (4, 4)
    result = lines_of(done["csvResult"])
    assert [line["label"] for line in result] == [
        "north",
        "",
        'a, "b"',
        "x" * 256,
        "short",
        "more",
        "long",
        "last",
    ]
    short, more = (f"The line has {number} fields, and the header has 4." for number in (2, 7))
    assert [line["error"].split(":")[0] for line in result] == ["", "", "", "label", short, more, "floor", ""]
    assert [bool(line["deviceId"]) for line in result] == [True] * 3 + [False] * 4 + [True]
    assert (result[5]["room"], result[5]["about"]) == ("hall", 'a "b",c,,d'), "nothing of it is lost"
    assert result[7]["room"] == "'=1+1", "a spreadsheet does not run it"
    devices = [
        await server.call("GET", f"{application}/devices/{line['deviceId']}")
        for line in result
        if line["deviceId"]
    ]
    assert [device["name"] for device in devices] == ["north", "meter", 'a, "b"', "last"]
    assert [device["description"] for device in devices] == ["first", *["of the device"] * 3]
    kind, floor = RECIPE["tags"][2], {"key": "floor", "value": "1"}
    named = {"key": "DeviceRecipe", "value": "thermometer"}
    assert devices[0]["tags"] == [kind, named, floor, {"key": "room", "value": "hall"}]
    assert devices[1]["tags"] == [*RECIPE["tags"], named]
    assert devices[3]["tags"][-1] == {"key": "room", "value": "=1+1"}
    for device in devices:
        assert (device["attributes"], device["keepDuplicates"]) == (RECIPE["attributes"], True)
        await server.call("POST", f"{application}/devices/{device['id']}/state", {"data": {"temp": 1}})
    assert (await server.call("GET", application))["summary"]["deviceCount"] == 4
    assert (await server.call("GET", f"{application}/payloadCounts"))["deviceCreate"] == {"total": 4}


async def test_blanks_around_the_names_in_the_header_are_left_out(server: Server) -> None:
    application = await server.application()
    path = await recipe(server, application)
    body = {
        "csv": 'name, about ,room,"\tplace"\n one ,first, 2,\n',
        "nameColumn": "name",
        "descriptionColumn": " about",
    }
    done = await server.call("POST", path, body, status=201)
    (line,) = lines_of(done["csvResult"])
    assert list(line) == ["name", "about", "room", "place", "deviceId", "error"]
    device = await server.call("GET", f"{application}/devices/{line['deviceId']}")
    assert (device["name"], device["description"]) == (" one ", "first"), "values stay as they are"
    assert device["tags"][-1] == {"key": "room", "value": " 2"}


async def test_gateways_and_parents_are_of_the_line_or_of_the_call(server: Server) -> None:
    application = await server.application()
    gateway, other = [
        id_of(await server.device(application, name, deviceClass="gateway")) for name in ("gateway", "other")
    ]
    hall = id_of(await server.device(application, "hall", deviceClass="system"))
    path = await recipe(server, application, deviceClass="peripheral", gatewayId=gateway, parentId=hall)
    text = f"g,p\n,\n{other.upper()},\n{UNKNOWN},\nx,\n,{gateway}\n"
    columns = {"csv": text, "gatewayIdColumn": "g", "parentIdColumn": "p"}
    done = await server.call("POST", path, columns, status=201)
    result = lines_of(done["csvResult"])
    assert [line["error"].split(":")[0] for line in result] == ["", "", "gatewayId", "g", "parentId"]
    first, second = [
        await server.call("GET", f"{application}/devices/{line['deviceId']}") for line in result[:2]
    ]
    assert (first["gatewayId"], first["parentId"]) == (gateway, hall)
    assert (second["gatewayId"], second["parentId"]) == (other, hall)
    done = await server.call("POST", path, {"count": 2, "gatewayId": other, "parentId": None}, status=201)
    for line in lines_of(done["csvResult"]):
        device = await server.call("GET", f"{application}/devices/{line['deviceId']}")
        assert (device["name"], device["gatewayId"], "parentId" in device) == ("meter", other, False)


async def test_what_cannot_be_read_as_a_whole_creates_nothing(start_server: Any) -> None:
    async with start_server(limits={"recipe_rows_max": 3}) as server:
        application = await server.application()
        path = await recipe(server, application)
        for body, sentence in (
            ({}, "csv or count: "),
            ({"csv": "a\nb", "count": 1}, "csv or count: "),
            ({"count": 0}, "count: "),
            ({"csv": ""}, "csv: has no line"),
            ({"csv": "a,b\n"}, "csv: has no line"),
            (
                {"csv": 'a,b\n"x,1\ny,2\n'},
                "csv: line 2: a quotation mark in the row that begins here is never",
            ),
            ({"csv": 'a,b\n"x\ny"z,1\n'}, "csv: line 3: "),
            ({"csv": "a,a\nx,y"}, "csv: the column 'a' stands in the header twice"),
            ({"csv": "a b\nx"}, "csv: the column 'a b' is not a valid key of a tag"),
            ({"csv": "a,\nx,y"}, "csv: the column '' is not a valid key of a tag"),
            (
                {"csv": "a, c\nx,y", "nameColumn": "b"},
                "nameColumn: the CSV has no column 'b'; it has 'a', 'c'.",
            ),
            (
                {"csv": "a\nx", "nameColumn": "a", "descriptionColumn": "a"},
                "descriptionColumn: the column 'a' is named",
            ),
            (
                {"csv": ",".join(f"c{number}" for number in range(105)) + "\nx"},
                "csv: the header has 105 columns",
            ),
            ({"csv": "a\nx", "colour": "red"}, "colour: "),
            ({"count": 1, "gatewayId": "x"}, "gatewayId: "),
            ({"count": 1, "nameColumn": "a"}, "nameColumn: the CSV has no column 'a'; it has none."),
            ({"csv": "a, a\nx,y"}, "csv: the column 'a' stands in the header twice"),
        ):
            refused = await server.call("POST", path, body, status=400)
            assert (refused["type"], refused["message"][: len(sentence)]) == ("Validation", sentence)
        await server.call("POST", path, {"count": 4}, status=413)
        await server.call("POST", path, {"csv": "a" + "\nx" * 4}, status=413)
        unknown = f"{application}/device-recipes/{UNKNOWN}/bulkCreate"
        await server.call("POST", unknown, {"count": 1}, status=404)
        other = await server.application("other")
        await server.call("POST", path.replace(application, other), {"count": 1}, status=404)
        assert await names(server, application) == []


async def test_each_device_gets_a_key_of_its_own(start_server: Any) -> None:
    async with start_server(limits={"changed_devices_max": 3}) as server:
        application = await server.application()
        path = await recipe(server, application)
        body = {"csv": f"n\none\n{'x' * 256}\ntwo\n", "nameColumn": "n", "makeUniqueKeySecret": True}
        done = await server.call("POST", path, body, status=201)
        result = lines_of(done["csvResult"])
        assert [bool(line["accessSecret"]) for line in result] == [True, False, True]
        one, _, two = [
            {"deviceId": line["deviceId"], "key": line["accessKey"], "secret": line["accessSecret"]}
            for line in result
        ]
        for credentials in (one, two):
            await server.call("POST", "/auth/device", credentials, token="")
        await server.call("POST", "/auth/device", {**one, "deviceId": two["deviceId"]}, token="", status=401)
        keys = (await server.call("GET", f"{application}/keys?sortField=name&sortDirection=asc"))["items"]
        assert [(key["name"], key["deviceIds"]) for key in keys] == [
            ("one", [one["deviceId"]]),
            ("two", [two["deviceId"]]),
        ]
        refused = await server.call("POST", path, {"count": 4, "makeUniqueKeySecret": True}, status=400)
        assert refused["message"].startswith("makeUniqueKeySecret: ")
        token = await api_token(server, application, "deviceRecipe.bulkCreate")
        await server.call("POST", path, {"count": 1, "makeUniqueKeySecret": True}, token=token, status=403)
        await server.call("POST", path, {"count": 1}, token=token, status=201)
        assert len(await names(server, application)) == 3


async def test_keys_for_devices_need_the_role_that_keys_need(server: Server) -> None:
    """As `applicationKeys.post` does, also through a workflow."""
    farm = await make_farm(server)
    path = await recipe(server, farm.barn)
    body = {"count": 1, "makeUniqueKeySecret": True}
    token = await farm.join("carol", "collaborate")
    refused = await server.call("POST", path, body, token=token, status=403)
    assert "needs one of the roles edit, admin" in refused["message"]
    given: dict[str, Any] = {"deviceRecipeId": path.split("/")[-2], "bulkCreateInfo": body}
    flow = await save(server, farm.barn, token, api("deviceRecipe", "bulkCreate", **given))
    assert answer(await press(server, flow, given))["error"]["statusCode"] == 403
    assert await names(server, farm.barn) == []
    await server.call("POST", path, {"count": 1}, token=token, status=201)
    await farm.change("carol", role="edit")
    await server.call("POST", path, body, token=token, status=201)
    assert answer(await press(server, flow, given))["result"]["created"] == 1


async def test_no_secret_of_many_is_guarded_in_the_result(server: Server) -> None:
    """One text in 64 would begin with `-`, which CSV guards with an apostrophe that nobody takes off."""
    application = await server.application()
    path = await recipe(server, application)
    credentials = []
    for _ in range(5):
        done = await server.call("POST", path, {"count": 100, "makeUniqueKeySecret": True}, status=201)
        credentials += [
            {"deviceId": line["deviceId"], "key": line["accessKey"], "secret": line["accessSecret"]}
            for line in lines_of(done["csvResult"])
        ]
    assert [each["secret"] for each in credentials if not each["secret"][0].isalnum()] == []
    await server.call("POST", "/auth/device", credentials[-1], token="")


async def download(log: dict[str, Any]) -> list[dict[str, str]]:
    async with httpx.AsyncClient(trust_env=False) as client:
        return lines_of((await client.get(log["output"]["file"]["url"])).text)


async def test_many_devices_are_created_by_a_job(start_server: Any) -> None:
    async with start_server(limits={"changed_devices_max": 3, "bulk_errors_max": 1}) as server:
        application = await server.application()
        gateway = id_of(await server.device(application, "gateway", deviceClass="gateway"))
        path = await recipe(server, application, deviceClass="peripheral")
        ids = [gateway, "", UNKNOWN, gateway, "x", gateway, "", gateway]
        text = "name,g\n" + "".join(f"n{number},{id}\n" for number, id in enumerate(ids))
        body = {"csv": text, "nameColumn": "name", "gatewayIdColumn": "g", "email": "ops@example.com"}
        log = await ended(server, application, (await server.call("POST", path, body, status=202))["jobId"])
        assert (log["name"], log["status"], log["input"]) == (
            "deviceRecipe.bulkCreate",
            "completed",
            {"rows": 8},
        )
        assert (log["resourceType"], log["resourceId"]) == ("deviceRecipe", path.split("/")[4])
        assert log["progress"] == {"completed": 8, "total": 8, "status": "completed"}
        assert (log["output"]["created"], log["output"]["failed"]) == (4, 4)
        result = await download(log)
        assert [line["name"] for line in result] == [f"n{number}" for number in range(8)]
        more = "The device was refused, for another reason than the lines before."
        errors = [line["error"].split(":")[0] for line in result]
        assert errors == ["", "gatewayId", more, "", "g", "", "gatewayId", ""]
        for line in result:
            if line["deviceId"]:
                device = await server.call("GET", f"{application}/devices/{line['deviceId']}")
                assert (device["name"], device["gatewayId"]) == (line["name"], gateway)
        assert len(await names(server, application)) == 5
        with server.system.store.snapshot() as snapshot:
            assert list(snapshot.keys("meta", b"jobData", b"jobDatb")) == []
