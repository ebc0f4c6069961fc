"""The palette and the forms beside the picture of a draft."""

from __future__ import annotations

import json
import re

import pytest

from tests.console.console_page import ConsolePage
from tests.console.drawing import add, box, drawn, nodes, saved
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow


async def test_custom_nodes_are_offered_with_their_own_settings(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    tones = [{"value": "low"}, {"value": "high"}]
    fields = [
        {"type": "stringTemplate", "label": "Greeting", "id": "greeting", "defaultValue": "Hello"},
        {
            "type": "select",
            "label": "Tone",
            "id": "tone",
            "defaultValue": "high",
            "options": tones,
        },
        {"type": "checkbox", "label": "Loud", "id": "loud", "defaultValue": True},
    ]
    config = {"outputCount": 2, "resultMode": "none", "fields": fields}
    custom = {"name": "greet", "flowClass": "customNode", "customNodeConfig": config}
    made = await server.call("POST", f"{application}/flows", custom)
    path = await drawn(server, console, application=application)
    await add(console, "greet")
    await console.at("textbox", "Greeting").fill("Good morning")
    await console.at("combobox", "Tone").choose("low")
    (node,) = (await saved(server, console, path))["nodes"]
    fields = [
        {"id": "greeting", "value": "Good morning"},
        {"id": "tone", "value": "low"},
        {"id": "loud", "value": True},
    ]
    assert node["config"] == {"customNodeId": made["id"], "fields": fields}
    await console.at(css="[data-output]").counts(2)
    await console.at("combobox", "Tone").choose("high (default)")
    (node,) = (await saved(server, console, path))["nodes"]
    assert node["config"]["fields"] == [fields[0], fields[2]]
    await console.at("link", "JSON").click()
    text = await console.at("textbox", "The draft as JSON").value()
    bare = {**node, "config": {"customNodeId": made["id"]}}
    await console.at("textbox", "The draft as JSON").fill(json.dumps({**json.loads(text), "nodes": [bare]}))
    await console.at("link", "Picture").click()
    await box(console, node["id"]).click()
    await checked(console, "Loud")
    await console.at("checkbox", "Loud").click()
    (node,) = (await saved(server, console, path))["nodes"]
    assert node["config"]["fields"] == [{"id": "loud", "value": False}]


async def test_abbreviations_in_names_of_parts_have_capitals(server: Server, console: ConsolePage) -> None:
    path = await drawn(server, console)
    await add(console, "JWT create")
    await console.at("textbox", "Name of the part").shown()
    (node,) = (await saved(server, console, path))["nodes"]
    assert node["type"] == "JWTCreateNode"
    assert node["id"].startswith("jwt-create-")


async def test_a_field_keeps_the_focus_while_the_draft_is_saved(server: Server, console: ConsolePage) -> None:
    path = await drawn(server, console)
    await add(console, "Debug message")
    await console.at("textbox", "Message").click()
    await console.type("a")
    await console.press("Control+s")
    await console.sees("The draft is saved.")
    await console.type("b")
    await console.at("textbox", "Message").holds("ab")
    assert (await saved(server, console, path))["nodes"][0]["config"] == {"message": "ab"}


async def test_boxes_are_checked_where_the_server_means_yes(server: Server, console: ConsolePage) -> None:
    files = {"type": "appFile", "key": "/a", "config": {"private": True}}
    path = await drawn(server, console, triggers=[files, {"type": "integration"}])
    await add(console, "Delete an event")
    await checked(console, "Delete multiple")
    await add(console, "An event is created or changes")
    await checked(console, "New", "Acknowledged", "Resolved")
    for _ in range(2):
        await console.at("checkbox", "New").click()
    await box(console, "@1").click()
    await checked(console, "Message")
    await box(console, "@0").click()
    await checked(console, "Create", "Update", "Delete", "Private")
    await console.at("checkbox", "Delete").click()
    found = await saved(server, console, path)
    assert found["nodes"][0]["config"] == {}
    assert [each.get("config") for each in found["triggers"]] == [
        {"create": True, "update": True, "delete": False, "private": True},
        None,
        {"new": True, "acknowledged": True, "resolved": True},
    ]


async def checked(console: ConsolePage, *names: str) -> None:
    """Wait until the boxes with these names are checked, and no others."""
    await console.at("checkbox", names[0]).shown()
    script = "[...document.querySelectorAll('.flow-part input:checked')].map((each) => each.labels?.[0]?.innerText)"

    async def look() -> bool:
        return bool(await console.run(script) == [*names])

    await console.soon(look, f"checks of {names}")


async def test_what_the_server_refuses_is_opened(server: Server, console: ConsolePage) -> None:
    path = await drawn(server, console, nodes=nodes("a"))
    await add(console, "Timer")
    await console.at("textbox", "Seconds").fill("0")
    await box(console, "a").click()
    await console.sees("DebugNode")
    async with console.expecting("status of 400"):
        await console.at("button", "Save").click()
        await console.at("heading", "Timer").shown()
    await console.sees("triggers[0].config.seconds")
    await console.at(css=".flow-box.trigger").at(css=".flow-badge").shown()
    await console.at("textbox", "Seconds").fill("90")
    assert (await saved(server, console, path))["triggers"][0]["config"] == {"seconds": 90}


async def test_parts_are_renamed_copied_and_deleted_with_their_lines(
    server: Server, console: ConsolePage
) -> None:
    button = {"type": "virtualButton", "key": "press", "outputIds": [["a"]]}
    loop = {"id": "loop", "type": "LoopNode", "config": {"more": {"kept": 1}}, "outputIds": [["c"], ["a"]]}
    odd = {"id": "odd", "type": "OddNode", "config": {"a": 1}}
    path = await drawn(server, console, triggers=[button], nodes=[loop, *nodes("a", "c", a=[["c"]]), odd])
    await box(console, "a").click()
    await console.at("textbox", "Id").fill("c")
    await console.sees("id: another node is c; give each its own.")
    await console.at("textbox", "Id").fill("first")
    await console.press("Enter")
    await box(console, "first").shown()
    await console.at("combobox", "Level").choose("warn")
    await console.at("button", "Duplicate").click()
    found = await saved(server, console, path)
    assert found["triggers"][0]["outputIds"] == [["first"]]
    assert found["nodes"][0] == {**loop, "outputIds": [["c"], ["first"]]}
    first, copy = found["nodes"][1], found["nodes"][4]
    assert first == {"id": "first", "type": "DebugNode", "config": {"level": "warn"}, "outputIds": [["c"]]}
    assert {**copy, "id": "first"} == first
    await console.at("button", "Fit").click()
    await box(console, "first").click()
    await console.at("button", "Delete part").click()
    found = await saved(server, console, path)
    assert (found["triggers"][0]["outputIds"], found["nodes"][0]["outputIds"]) == ([[]], [["c"], []])
    await box(console, "loop").click()
    await console.at("textbox", "More").fill("")
    await console.at("textbox", "More").fill('{"kept": 2}')
    await box(console, "odd").click()
    await console.sees("Nodes of this type do not run on this server.")
    await console.at("textbox", "Configuration").fill("[2]")
    await console.sees('config is not an object, such as {"a": 1}. It is not in the draft yet.')
    await console.at("textbox", "Configuration").fill('{"a": 12345678901234567890}')
    found = await saved(server, console, path)
    assert [each["config"] for each in (found["nodes"][0], found["nodes"][2])] == [
        {"more": {"kept": 2}},
        {"a": 12345678901234567890},
    ]


async def test_a_narrow_window_has_a_picture_to_look_at_and_the_form(
    server: Server, console: ConsolePage
) -> None:
    await console.viewport(390, 844, mobile=True)
    path = await drawn(server, console, nodes=nodes("a", "b"))
    await console.sees("In a narrow window the picture is only to look at.")
    await console.at(css="[data-output]").gone()
    await console.at("link", re.compile("^Debug"), nth=0).click()
    await console.at("combobox", "Leads to").choose("Debug message")
    assert (await saved(server, console, path))["nodes"][0]["outputIds"] == [["b"]]


async def focused(console: ConsolePage) -> str:
    """What has the focus, as a label says it."""
    script = "(({ labels, ariaLabel }) => labels?.[0]?.textContent || ariaLabel)(document.activeElement)"
    return str(await console.run(script))


async def test_rows_of_a_list_are_added_changed_moved_and_removed(
    server: Server, console: ConsolePage
) -> None:
    kept = {"source": "data.a", "destination": "data.b", "type": "move", "more": {"kept": 1}}
    path = await drawn(
        server, console, nodes=[{"id": "m", "type": "MutateNode", "config": {"rules": [kept]}}]
    )
    await box(console, "m").click()
    await console.at("button", "Add rule").click()
    await console.at("combobox", "Rule 2: Type").shown()
    assert await focused(console) == "Rule 2: Type"
    await console.at("textbox", "Rule 2: Destination").fill("data.c")
    await console.at("textbox", "Rule 2: Value").fill("{{data.b}}")
    await console.at("button", "Undo").click()
    assert await rules(server, console, path) == [kept, {"destination": "data.c"}]
    await console.at("textbox", "Rule 2: Value").fill("{{data.a}}")
    await console.at("combobox", "Rule 2: Value template type").choose("json")
    await console.at("textbox", "Rule 1: Source").fill("data.x")
    new = {"destination": "data.c", "valueTemplate": "{{data.a}}", "valueTemplateType": "json"}
    assert await rules(server, console, path) == [{**kept, "source": "data.x"}, new]
    await console.at("button", "Move rule 2 up").press("Enter")
    await console.at("button", "Move rule 1 up").shown()
    assert await focused(console) == "Move rule 1 down"
    assert await rules(server, console, path) == [new, {**kept, "source": "data.x"}]
    await console.at("textbox", "Rule 1: Destination").fill("")
    await console.at("button", "Remove rule 1").press("Enter")
    await console.at("button", "Remove rule 2").gone()
    assert await focused(console) == "Rule 1"
    assert await rules(server, console, path) == [{**kept, "source": "data.x"}]
    await console.press("Control+z")
    await console.at("button", "Remove rule 2").shown()
    assert await rules(server, console, path) == [
        {name: new[name] for name in ("valueTemplate", "valueTemplateType")},
        {**kept, "source": "data.x"},
    ]
    await console.at("button", "Remove rule 2").click()
    await console.at("button", "Remove rule 1").click()
    await console.at("textbox", re.compile("^Rule")).gone()
    assert await focused(console) == "Add rule"
    assert (await saved(server, console, path))["nodes"][0]["config"] == {}
    for left in (1, 2):
        await console.at("button", "Undo").click()
        await console.at("button", f"Remove rule {left}").shown()


async def rules(server: Server, console: ConsolePage, path: str) -> object:
    return (await saved(server, console, path))["nodes"][0]["config"]["rules"]


async def test_the_lines_of_the_cases_of_a_switch_go_with_them(server: Server, console: ConsolePage) -> None:
    cases = [{"caseTemplate": each} for each in ("one", "two", "three")]
    lines = [["d"], ["a"], ["b", "d"], ["c"]]
    switch = {
        "id": "s",
        "type": "SwitchNode",
        "config": {"switchTemplate": "x", "cases": cases},
        "outputIds": lines,
    }
    path = await drawn(server, console, nodes=[switch, *nodes("a", "b", "c", "d")])
    one, two, three = cases

    async def stored() -> tuple[object, object]:
        node = (await saved(server, console, path))["nodes"][0]
        return node["config"].get("cases"), node["outputIds"]

    await box(console, "s").click()
    await console.at("button", "Move case 1 down").click()
    assert await stored() == ([two, one, three], [["d"], ["b", "d"], ["a"], ["c"]])
    await console.at("button", "Remove case 1").click()
    assert await stored() == ([one, three], [["d"], ["a"], ["c"]])
    await console.at("button", "Add case").click()
    await console.at("combobox", "Leads to, if case 3").shown()
    await console.at("textbox", "Case 3").fill("four")
    await console.at("combobox", "Leads to, if four").choose("Debug message (b)")
    four = {"caseTemplate": "four"}
    assert await stored() == ([one, three, four], [["d"], ["a"], ["c"], ["b"]])
    await console.at("button", "Move case 3 up").click()
    assert await stored() == ([one, four, three], [["d"], ["a"], ["b"], ["c"]])
    await console.at("button", "Undo").click()
    await console.at("button", "Remove case 1").click()
    assert await stored() == ([three, four], [["d"], ["c"], ["b"]])
    await console.at("button", "Undo").click()
    assert await stored() == ([one, three, four], [["d"], ["a"], ["c"], ["b"]])
    for number in (3, 2, 1):
        await console.at("button", f"Remove case {number}").click()
    assert await stored() == (None, [["d"]])


ORDERS = """async () => {
    const { reordered } = await import("/console/views/workflow/change.js");
    const cases = ["a", "b"].map((caseTemplate) => ({ caseTemplate }));
    const outputs = (outputIds, places, type = "SwitchNode") => {
        const node = { id: "s", type, config: { cases, rules: cases }, outputIds };
        const name = type === "SwitchNode" ? "cases" : "rules";
        return reordered({ nodes: [node] }, "s", name, places, {}).nodes[0].outputIds;
    };
    return [
        outputs([["d"]], [1, 0]),
        outputs([["d"], ["x"]], [1, 0]),
        outputs([["d"], ["x"], ["y"], ["stale"]], [0, 1, null]),
        outputs([["d"], ["x"], ["y"], ["stale"]], [1]),
        outputs([["d"], ["x"]], [0, 1, null]),
        outputs([["d"], [], ["x"]], [0]),
        outputs(undefined, [0]) ?? null,
        outputs([], [0, 1, null]),
        outputs([["d"], ["x"], ["y"]], [1], "MutateNode"),
    ];
}"""


async def test_lines_of_outputs_that_are_no_cases_stay_so(server: Server, console: ConsolePage) -> None:
    await drawn(server, console)
    assert await console.run(f"({ORDERS})()") == [
        [["d"]],
        [["d"], [], ["x"]],
        [["d"], ["x"], ["y"], [], ["stale"]],
        [["d"], ["y"], ["stale"]],
        [["d"], ["x"]],
        [["d"], []],
        None,
        [],
        [["d"], ["x"], ["y"]],
    ]


async def test_texts_and_days_are_lists(server: Server, console: ConsolePage) -> None:
    mail = {"id": "mail", "type": "StructureEmailNode", "config": {"toAddresses": ["a@example.com"]}}
    path = await drawn(server, console, nodes=[mail, {"id": "time", "type": "TimeRangeNode"}])
    await box(console, "mail").click()
    await console.at("button", "Add to address").press("Enter")
    await console.at("textbox", "To address 2").shown()
    await console.type("{{to}}")
    await console.at("button", "Move to address 2 up").click()
    found = await saved(server, console, path)
    assert found["nodes"][0]["config"]["toAddresses"] == ["{{to}}", "a@example.com"]
    await console.at("button", "Remove to address 1").click()
    await box(console, "time").click()
    await console.at("checkbox", "Sunday").click()
    await console.at("checkbox", "Friday").click()
    found = await saved(server, console, path)
    assert found["nodes"][0]["config"]["toAddresses"] == ["a@example.com"]
    assert found["nodes"][1]["config"]["days"] == [False, True, True, True, True, False, True]


async def test_values_keep_what_another_field_would_drop(server: Server, console: ConsolePage) -> None:
    mail = {"subjectTemplate": "one\r\ntwo", "toAddresses": ["a\nb"]}
    path = await drawn(
        server,
        console,
        nodes=[
            {"id": "a", "type": "DebugNode", "config": {"message": "one\ntwo"}},
            {"id": "b", "type": "StructureEmailNode", "config": mail},
            {"id": "c", "type": "DebugNode", "config": {"message": {"b": 1}}},
        ],
    )
    await box(console, "a").click()
    await console.at("textbox", "Message").press("Control+End")
    await console.type("x")
    await box(console, "b").click()
    await console.at("textbox", "To address 1").press("Control+End")
    await console.type("c")
    await console.at("textbox", "Subject").press("Control+End")
    for key in ("Backspace", "Backspace", "Backspace", "Backspace"):
        await console.press(key)
    await console.type("x")
    await box(console, "c").click()
    await console.at("textbox", "Message").press("Control+a")
    await console.type("12")
    found = await saved(server, console, path)
    assert [each["config"] for each in found["nodes"]] == [
        {"message": "one\ntwox"},
        {"subjectTemplate": "onex", "toAddresses": ["a\nbc"]},
        {"message": 12},
    ]


async def test_lists_that_do_not_fit_are_json(server: Server, console: ConsolePage) -> None:
    mutate = {"id": "m", "type": "MutateNode", "config": {"rules": ["odd"]}}
    array = {
        "id": "a",
        "type": "ArrayNode",
        "config": {"rules": [{"type": "push", "indexTemplate": {"b": 1}}]},
    }
    mail = {"id": "mail", "type": "StructureEmailNode", "config": {"toAddresses": "a@example.com"}}
    path = await drawn(server, console, nodes=[mutate, array, mail])
    await box(console, "m").click()
    assert json.loads(await console.at("textbox", "Rules").value()) == ["odd"]
    await console.at("textbox", "Rules").fill('[{"type": "remove", "source": "data.a"}]')
    await console.at("button", "Rules as a list").click()
    await console.at("combobox", "Rule 1: Type").choose("copy")
    await box(console, "a").click()
    assert json.loads(await console.at("textbox", "Rule 1: Index").value()) == {"b": 1}
    await console.at("textbox", "Rule 1: Input").fill("{{data.a}}")
    await console.at("textbox", "Rule 1: Index").fill("{")
    await console.at("button", "Add rule").click()
    await console.at("button", "Move rule 1 down").click()
    await console.at("combobox", "Rule 1: Order").shown()
    await console.at("textbox", "Rule 2: Index").holds("{")
    await console.at("button", "Remove rule 1").click()
    await console.sees("rules[0].indexTemplate is not JSON")
    await console.at("button", "Rules as JSON").click()
    rule = {"type": "push", "indexTemplate": {"b": 1}, "inputTemplate": "{{data.a}}"}
    assert json.loads(await console.at("textbox", "Rules").value()) == [rule]
    await box(console, "mail").click()
    await console.at("textbox", "To addresses").holds('"a@example.com"')
    found = await saved(server, console, path)
    assert [each["config"] for each in found["nodes"]] == [
        {"rules": [{"type": "copy", "source": "data.a"}]},
        {"rules": [rule]},
        {"toAddresses": "a@example.com"},
    ]
