"""The picture of a draft is changed by mouse and keyboard, and stays the same document as its JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.console.console_page import ConsolePage
from tests.console.target import Target
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow


async def drawn(server: Server, console: ConsolePage, *, application: str = "", **definition: Any) -> str:
    """The path of a workflow, with the picture of its draft open."""
    application = application or await server.application()
    flow = await server.call("POST", f"{application}/flows", {"name": "vents", **definition})
    path = f"{application}/flows/{flow['id']}"
    await console.go(f"#{path.replace('/flows/', '/workflows/')}/edit")
    await console.at("group", re.compile("^The draft")).shown()
    return path


def box(console: ConsolePage, key: str) -> Target:
    """The box of a part."""
    return console.at(css=f'[data-part="{key}"]')


def output(console: ConsolePage, key: str, number: int = 0) -> Target:
    """The handle of an output of a part."""
    return console.at(css=f'[data-of="{key}"][data-output="{number}"]')


async def saved(server: Server, console: ConsolePage, path: str) -> Any:
    """The draft, after it was saved in the page."""
    await console.at("button", "Save").click()
    await console.at("link", "Try before saving").gone()  # a note may be that of the save before
    return await server.call("GET", path)


def nodes(*names: str, **outputs: list[list[str]]) -> list[dict[str, Any]]:
    """Debug nodes with these ids, and the outputs of some of them."""
    return [{"id": each, "type": "DebugNode", "outputIds": outputs.get(each, [])} for each in names]


async def test_parts_are_connected_and_lines_removed_by_mouse(server: Server, console: ConsolePage) -> None:
    button = {"type": "virtualButton", "key": "press", "meta": {"x": 0, "y": 0}}
    a, b = nodes("a", "b")
    placed = [{**a, "meta": {"x": -150, "y": 120}}, {**b, "meta": {"x": 120, "y": 240}}]
    path = await drawn(server, console, triggers=[button], nodes=placed)
    await output(console, "@0").drag_to(box(console, "a"))
    await output(console, "a").drag_to(box(console, "b"))
    await output(console, "b").drag_by(8, -8)
    await output(console, "b").drag_to(box(console, "@0"))
    await console.sees("No line leads to a trigger.")
    found = await saved(server, console, path)
    assert found["triggers"][0]["outputIds"] == [["a"]]
    assert [each["outputIds"] for each in found["nodes"]] == [[["b"]], []]
    await console.at(css=".flow-line").click()
    await console.at("button", "Remove the line from Virtual button to Debug").click()
    await console.at(css=".flow-line").click()
    await console.press("Delete")
    found = await saved(server, console, path)
    assert found["triggers"][0]["outputIds"] == [[]]
    assert found["nodes"][0]["outputIds"] == [[]]
    for keys in ("Control+z", "Control+z", "Control+z", "Control+Shift+z"):
        await console.press(keys)
    found = await saved(server, console, path)
    assert (found["triggers"][0]["outputIds"], found["nodes"][0]["outputIds"]) == ([["a"]], [["b"]])
    await console.at("button", "Redo").click()
    found = await saved(server, console, path)
    assert (found["triggers"][0]["outputIds"], found["nodes"][0]["outputIds"]) == ([[]], [["b"]])
    await console.at(css=".flow-line").click()
    await box(console, "b").click()
    await console.press("Delete")
    found = await saved(server, console, path)
    assert [(each["id"], each["outputIds"]) for each in found["nodes"]] == [("a", [[]])]


async def test_a_line_to_nothing_asks_what_follows(server: Server, console: ConsolePage) -> None:
    path = await drawn(server, console, nodes=[{"id": "a", "type": "ConditionalNode"}])
    await output(console, "a", 1).drag_by(-60, 130)
    await console.sees("Choose what follows Conditional, true.")
    await console.type("delay")
    await console.press("Enter")
    await console.at("textbox", "Note").fill("Not too soon.")
    found = await saved(server, console, path)
    first, delay = found["nodes"]
    assert first["outputIds"] == [[], [delay["id"]]]
    assert delay["type"] == "DelayNode"
    assert delay["meta"]["description"] == "Not too soon."
    assert delay["meta"]["x"] < first["meta"]["x"]
    assert delay["meta"]["y"] > first["meta"]["y"] + 100
    await output(console, delay["id"]).drag_by(-130, -20)
    await console.sees("Choose what follows Delay.")
    await box(console, "a").click()
    await console.at("textbox", "Expression").shown()
    assert "Choose what follows" not in await console.shows()


async def test_custom_nodes_are_offered_with_their_own_settings(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    tones = [{"value": "low"}, {"value": "high"}]
    fields = [
        {"type": "stringTemplate", "label": "Greeting", "id": "greeting", "defaultValue": "Hello"},
        {
            "type": "select",
            "label": "Tone",
            "id": "tone",
            "defaultValue": "low",
            "options": tones,
        },
    ]
    config = {"outputCount": 2, "resultMode": "none", "fields": fields}
    custom = {"name": "greet", "flowClass": "customNode", "customNodeConfig": config}
    made = await server.call("POST", f"{application}/flows", custom)
    path = await drawn(server, console, application=application)
    await add(console, "greet")
    await console.at("textbox", "Greeting").fill("Good morning")
    await console.at("combobox", "Tone").choose("high")
    (node,) = (await saved(server, console, path))["nodes"]
    assert node["config"] == {
        "customNodeId": made["id"],
        "fields": [{"id": "greeting", "value": "Good morning"}, {"id": "tone", "value": "high"}],
    }
    assert await console.at(css="[data-output]").count() == 2


async def test_the_first_move_fixes_the_places_of_all_parts(server: Server, console: ConsolePage) -> None:
    button = {"type": "virtualButton", "key": "press", "outputIds": [["a", "b"]]}
    path = await drawn(server, console, triggers=[button], nodes=nodes("a", "b"))
    await box(console, "a").drag_by(-60, 40)
    first = await saved(server, console, path)
    places = {
        each.get("id", "press"): (each["meta"]["x"], each["meta"]["y"])
        for each in [*first["triggers"], *first["nodes"]]
    }
    assert places["a"][1] == places["b"][1] + 40
    await box(console, "b").click()
    await console.press("ArrowRight")
    await console.press("ArrowRight")
    second = await saved(server, console, path)
    assert second["nodes"][1]["meta"] == {"x": places["b"][0] + 16, "y": places["b"][1]}
    assert second["nodes"][0] == first["nodes"][0]
    await console.at("button", "Undo").click()
    assert (await saved(server, console, path))["nodes"] == first["nodes"]
    await box(console, "a").drag_to(box(console, "b"))
    third = await saved(server, console, path)
    assert abs(third["nodes"][0]["meta"]["x"] - third["nodes"][1]["meta"]["x"]) > 190 or (
        abs(third["nodes"][0]["meta"]["y"] - third["nodes"][1]["meta"]["y"]) > 60
    )
    await console.at("button", "Arrange in layers").click()
    fourth = await saved(server, console, path)
    assert fourth["nodes"][0]["meta"]["y"] == fourth["nodes"][1]["meta"]["y"]


async def test_nothing_is_lost_between_picture_and_json(server: Server, console: ConsolePage) -> None:
    odd = {"config": {"deep": [{"a": None}], "\u00e4": 0.1}, "meta": {"color": "red"}}
    unknown = {"id": "odd", "type": "OddNode", **odd}
    many = nodes(*[f"n{number}" for number in range(120)])
    meta = {"uiId": "u", "payload": "[1]"}
    button = {"type": "virtualButton", "key": "press", "meta": meta, "outputIds": [["odd"]]}
    globals = [{"key": "limit", "json": "1"}]
    path = await drawn(server, console, triggers=[button], nodes=[unknown, *many], globals=globals)
    before = await server.call("GET", path)
    await box(console, "n7").click()
    await console.press("Delete")
    await console.at("link", "JSON").click()
    text = json.loads(await console.at("textbox", "The draft as JSON").value())
    assert text["nodes"] == [each for each in before["nodes"] if each["id"] != "n7"]
    assert (text["triggers"], text["globals"]) == (before["triggers"], before["globals"])
    await console.at("textbox", "The draft as JSON").fill(json.dumps({**text, "nodes": [unknown]}))
    await console.at("link", "Picture").click()
    await output(console, "@0").shown()
    assert await console.at(css="[data-part]").count() == 2
    await console.at("button", "Undo").click()
    assert await console.at(css="[data-part]").count() == 121
    found = await saved(server, console, path)
    assert found["nodes"] == text["nodes"]
    assert found["triggers"] == before["triggers"]


async def add(console: ConsolePage, name: str) -> None:
    """Click a part in the palette."""
    await console.at("group", "Parts to add").at("button", name).click()


async def test_a_workflow_is_built_by_mouse_and_runs(server: Server, console: ConsolePage) -> None:
    path = await drawn(server, console)
    await add(console, "Virtual button")
    await console.at("textbox", "Name of the part").fill("Measure")
    await add(console, "Conditional")
    await console.at("textbox", "Expression").fill("{{data.temperature}} > 30")
    await console.sees("ConditionalNode")
    (conditional,) = await console.run(PARTS.replace("TYPE", "conditional"))
    await add(console, "Debug")
    await console.at("textbox", "Name of the part").fill("Cool")
    hot = console.at("group", "Parts to add").at("button", "Throw error")
    await hot.drag_to(box(console, conditional), x=180, y=120)
    await console.at("textbox", "Name of the part").fill("Hot")
    await console.at("textbox", "Message").fill("It is hot.")
    (error,) = await console.run(PARTS.replace("TYPE", "throw error"))
    await output(console, conditional, 1).drag_to(box(console, error))
    found = await saved(server, console, path)
    button, (warm, cool, stop) = found["triggers"][0], found["nodes"]
    assert button["outputIds"] == [[warm["id"]]]
    assert warm["outputIds"] == [[cool["id"]], [stop["id"]]]
    assert [each["meta"]["label"] for each in (button, cool, stop)] == ["Measure", "Cool", "Hot"]
    assert (warm["config"], stop["config"]) == (
        {"expression": "{{data.temperature}} > 30"},
        {"messageTemplate": "It is hot."},
    )
    assert "problems" not in found
    await console.at("link", "Graph").click()
    await console.at("button", "Measure").click()
    await console.at("textbox", re.compile("Payload")).fill('{"temperature": 41}')
    await console.at("button", "Press").click()
    await console.sees("Pressed.")
    await console.at("link", "Runs").click()
    await console.at("region", "Runs").at("link", nth=0).click()
    await console.at("link", re.compile("^Hot.*failed here")).shown()
    await console.at("link", re.compile("^Cool.*not visited")).shown()


PARTS = """[...document.querySelectorAll(".flow-canvas [data-part]")]
    .filter((box) => box.querySelector(".detail").textContent === "TYPE").map((box) => box.dataset.part)"""


async def test_a_workflow_is_built_without_a_pointer(server: Server, console: ConsolePage) -> None:
    path = await drawn(server, console)
    for name in ("virtual button", "conditional", "debug"):
        await console.press("/")
        await console.press("Control+a")
        await console.type(name)
        await console.press("Enter")
        await console.sees(f"{name} ")
        await console.press("Escape")
    await console.at("link", re.compile("^Virtual button")).press("Enter")
    await console.sees("virtualButton")
    await console.press("Escape")
    await console.press("/")
    await console.press("Control+a")
    await console.type("generate id")
    await console.press("Enter")
    await console.sees("GenerateIdNode")
    await console.at("link", re.compile("^Virtual button")).press("Enter")
    await console.sees("virtualButton")
    await console.at("combobox", "Leads to").choose("Generate id")
    await console.at("link", re.compile("^Debug")).press("Enter")
    await console.sees("DebugNode")
    await console.at("link", re.compile("^Debug")).press("ArrowDown")
    await console.press("Control+s")
    await console.sees("The draft is saved.")
    found = await server.call("GET", path)
    conditional, debug, id = found["nodes"]
    assert found["triggers"][0]["outputIds"] == [[conditional["id"], id["id"]]]
    assert conditional["outputIds"] == [[debug["id"]]]
    await console.at("link", re.compile("^Debug")).press("Delete")
    await console.press("Control+s")
    await console.at("link", re.compile("^Debug")).gone()
    await console.sees("Saved.")
    assert [each["type"] for each in (await server.call("GET", path))["nodes"]] == [
        "ConditionalNode",
        "GenerateIdNode",
    ]


async def touch(console: ConsolePage, start: Target, x: float, y: float) -> None:
    """Put a finger on an element, move it so many px, and lift it."""
    script = """function () {
        const box = this.getBoundingClientRect();
        return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    }"""
    at = await start._call(script)
    for type, part in (("touchStart", 0), ("touchMove", 0.5), ("touchMove", 1)):
        point = {"x": at["x"] + part * x, "y": at["y"] + part * y}
        await console.command("Input.dispatchTouchEvent", type=type, touchPoints=[point])
    await console.command("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])


async def test_parts_are_moved_and_connected_by_touch(server: Server, console: ConsolePage) -> None:
    await console.command("Emulation.setTouchEmulationEnabled", enabled=True)
    a, b = nodes("a", "b")
    placed = [{**a, "meta": {"x": 0, "y": 0}}, {**b, "meta": {"x": 0, "y": 200}}]
    path = await drawn(server, console, nodes=placed)
    await touch(console, box(console, "b"), 40, 0)
    await console.sees("Not saved.")
    await touch(console, output(console, "a"), 40, 170)
    found = await saved(server, console, path)
    assert found["nodes"] == [
        {**placed[0], "outputIds": [["b"]]},
        {**placed[1], "meta": {"x": 40, "y": 200}},
    ]


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
    path = await drawn(server, console, triggers=[button], nodes=[loop, *nodes("a", "c", a=[["c"]])])
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
    first, copy = found["nodes"][1], found["nodes"][3]
    assert first == {"id": "first", "type": "DebugNode", "config": {"level": "warn"}, "outputIds": [["c"]]}
    assert {**copy, "id": "first"} == first
    await console.at("button", "Fit").click()
    await box(console, "first").click()
    await console.at("button", "Delete part").click()
    found = await saved(server, console, path)
    assert (found["triggers"][0]["outputIds"], found["nodes"][0]["outputIds"]) == ([[]], [["c"], []])
    await box(console, "loop").click()
    await console.at("textbox", "More").fill('{"kept": 2}')
    assert (await saved(server, console, path))["nodes"][0]["config"] == {"more": {"kept": 2}}


async def test_a_narrow_window_has_a_picture_to_look_at_and_the_form(
    server: Server, console: ConsolePage
) -> None:
    await console.viewport(390, 844, mobile=True)
    path = await drawn(server, console, nodes=nodes("a", "b"))
    await console.sees("In a narrow window the picture is only to look at.")
    assert await console.at(css="[data-output]").count() == 0
    await console.at("link", re.compile("^Debug"), nth=0).click()
    await console.at("combobox", "Leads to").choose("Debug")
    assert (await saved(server, console, path))["nodes"][0]["outputIds"] == [["b"]]


CHANGES = """async (seed, count, steps) => {
    const at = (name) => import(`/console/views/workflow/${name}.js`);
    const change = await at("change"), shape = await at("shape"), layout = await at("layout");
    const { offersOf } = await at("palette");
    let state = seed;
    const below = (most) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * most);
    };
    const offers = offersOf(PALETTE, "cloud");
    let definition = DEFINITION;
    const found = [];
    for (let step = 0; step < steps; step++) {
        const parts = shape.partsOf(definition);
        const any = () => parts[below(parts.length)];
        const one = parts.length ? any() : null, other = parts.length ? any() : null;
        const output = one ? below(shape.outputsOf(one).length || 1) : 0;
        const edges = shape.edgesOf(parts);
        const places = () => layout.editLayout(parts, edges, shape.loopsOf(parts, edges)).places;
        const act = below(9);
        if (act < 2 || !one) {
            const offer = offers[below(offers.length)];
            definition = change.added(definition, offer.kind, offer.make(definition)).definition;
        } else if (act < 4) {
            if (!change.lineProblem(parts, one.key, output, other.key))
                definition = change.connected(definition, one.key, output, other.key).definition;
        } else if (act === 4 && edges.length) {
            const edge = edges[below(edges.length)];
            definition = change.disconnected(definition, edge.from, edge.output, edge.to);
        } else if (act === 5) {
            definition = change.duplicated(definition, one.key).definition;
        } else if (act === 6 && below(2)) {
            definition = change.removed(definition, one.key);
        } else if (act === 7) {
            const id = below(2) ? "id " + step : other.source.id || "";
            if (one.kind === "node" && !change.idProblem(definition, one.key, id))
                definition = change.renamed(definition, one.key, id);
        } else {
            const free = layout.freePlace(places().values(), { x: below(900), y: below(900) });
            definition = change.placed(definition, new Map([...places(), [one.key, free]]));
        }
        if (step % Math.ceil(steps / count) === 0) found.push(structuredClone(definition));
    }
    return [...found, definition];
}"""


async def test_the_server_accepts_what_any_sequence_of_changes_makes(
    server: Server, console: ConsolePage
) -> None:
    path = await drawn(server, console, enabled=False)
    palette = await server.call("GET", f"{path.rpartition('/')[0]}/palette")
    kept = {"id": "kept", "type": "OddNode", "config": {"deep": [1]}}
    noid = {"type": "DebugNode", "meta": {"x": 1, "y": 2}}
    grouped = [
        {"type": "deviceTag", "key": f"kind/{kind}", "meta": {"uiId": "both"}, "outputIds": [["kept"]]}
        for kind in ("fan", "pump")
    ]
    start = {"triggers": grouped, "nodes": [kept, noid], "globals": [{"key": "a", "json": "1"}]}
    script = CHANGES.replace("PALETTE", json.dumps(palette)).replace("DEFINITION", json.dumps(start))
    for seed in range(12):
        for definition in await console.run(f"({script})({seed}, 4, 120)"):
            answer = await server.call("PATCH", path, definition)
            assert answer["triggers"] == definition["triggers"]
            assert answer["nodes"] == definition["nodes"]
            assert answer["globals"] == start["globals"]
            odd = [each for each in definition["nodes"] if each["type"] == "OddNode"]
            assert all(each["config"] == kept["config"] for each in odd)
