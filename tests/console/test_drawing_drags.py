"""Parts are dragged onto lines of a picture, and past its edges."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.console.console_page import ConsolePage
from tests.console.drawing import box, drawn, nodes, output, pressed, saved
from tests.console.target import Target
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow


def placed(*places: tuple[str, float, float], **outputs: list[list[str]]) -> list[dict[str, Any]]:
    """Debug nodes at places, and the outputs of some of them."""
    found = nodes(*[name for name, _, _ in places], **outputs)
    return [{**node, "meta": {"x": x, "y": y}} for node, (_, x, y) in zip(found, places, strict=True)]


def outputs(definition: Any) -> dict[str, Any]:
    """The outputs of the nodes of a definition, by their ids."""
    return {each["id"]: each["outputIds"] for each in definition["nodes"]}


def offered(console: ConsolePage, name: str) -> Target:
    """A part in the palette."""
    return console.at("group", "Parts to add").at("button", name)


LINE = ".flow-line:not(.back)"


async def test_a_part_of_the_palette_is_put_into_a_line(server: Server, console: ConsolePage) -> None:
    start = placed(("a", 0, 0), ("b", 40, 108), ("c", -200, 108), ("d", -200, 0), a=[["b", "c"]])
    path = await drawn(server, console, nodes=start)
    line = console.at(css=f'{LINE}[data-line="a 0 b"]')
    async with pressed(console, offered(console, "If a condition holds")) as pointer:
        await pointer.over(box(console, "d"))
        assert await console.at(css=".flow-into").count() == 0
        await pointer.over(line)
        await console.at(css='.flow-into[data-into="a 0 b"]').shown()
        await pointer.to(pointer.x, pointer.y - 70)
        await console.at(css=".flow-into").gone()
        await pointer.over(line)
        await console.at(css=".flow-into").shown()
    await console.at("textbox", "Expression").shown()
    found = await saved(server, console, path)
    (new,) = [each["id"] for each in found["nodes"] if each["type"] == "ConditionalNode"]
    assert outputs(found) == {"a": [[new, "c"]], "b": [], "c": [], "d": [], new: [[], ["b"]]}
    # What stands as low as the end of the line has made room.
    a, b, c, d, between = [each["meta"] for each in found["nodes"]]
    assert (a["y"], d["y"]) == (0, 0)
    assert b["y"] == c["y"] == 216
    assert between["y"] == 108
    assert [each["x"] for each in (a, b, c, d)] == [0, 40, -200, -200]
    await console.at("button", "Undo").click()
    assert (await saved(server, console, path))["nodes"] == start


async def test_what_cannot_be_between_two_parts_is_not_put_into_a_line(
    server: Server, console: ConsolePage
) -> None:
    places = [("a", -100, 0), ("b", 100, 300), ("c", -300, 300), ("d", -300, 400)]
    start = placed(*places, a=[["b"]], c=[["d"]])
    path = await drawn(server, console, nodes=start)
    line = console.at(css=f'{LINE}[data-line="a 0 b"]')
    for part in (offered(console, "Timer"), offered(console, "Fail"), box(console, "c")):
        async with pressed(console, part) as pointer:
            await pointer.over(line)
            await console.at(css="svg.is-add, svg.is-move").shown()
            assert await console.at(css=".flow-into").count() == 0
        await console.at(css="svg.is-add, svg.is-move").gone()
        found = await saved(server, console, path)
        assert outputs(found).items() >= outputs({"nodes": start}).items()
        await console.at("button", "Undo").click()
        assert (await saved(server, console, path))["nodes"] == start


async def test_a_part_without_lines_is_moved_into_a_line(server: Server, console: ConsolePage) -> None:
    button = {"type": "virtualButton", "key": "press", "meta": {"x": -100, "y": 0}, "outputIds": [["b"]]}
    start = [*placed(("b", 100, 300)), {"type": "DebugNode", "meta": {"x": -300, "y": 200}}]
    path = await drawn(server, console, triggers=[button], nodes=start)
    async with pressed(console, box(console, "#1")) as pointer:
        await pointer.over(console.at(css=LINE))
        await console.at(css=".flow-into").shown()
        await console.press("Escape")
        await console.at(css=".flow-into").gone()
    await console.at(css=LINE).counts(1)
    await box(console, "#1").drag_to(console.at(css=LINE))
    await console.settled()
    focused = await console.run("document.activeElement.dataset.part")
    found = await saved(server, console, path)
    b, moved = found["nodes"]
    assert found["triggers"][0]["outputIds"] == [[moved["id"]]]
    assert moved["outputIds"] == [["b"]]
    assert moved["meta"] == {"x": 0, "y": 150}
    assert b["meta"] == {"x": 100, "y": 300}
    assert focused == moved["id"]
    await console.at("textbox", "Name of the part").shown()
    await console.at("button", "Undo").click()
    found = await saved(server, console, path)
    assert (found["triggers"], found["nodes"]) == ([button], start)


SHOWN = """(() => {
    const svg = document.querySelector(".flow-canvas svg");
    const [x, y, width] = svg.getAttribute("viewBox").split(" ").map(Number);
    const box = svg.getBoundingClientRect();
    const at = (css, find) => {
        const found = svg.querySelector(css);
        return found && find(found);
    };
    const middle = (found) => {
        const own = found.getBoundingClientRect();
        return [own.x + own.width / 2, own.y + own.height / 2];
    };
    const end = (found) => {
        const last = found.getPointAtLength(found.getTotalLength()).matrixTransform(found.getScreenCTM());
        return [last.x, last.y];
    };
    const right = Math.min(box.right, innerWidth), bottom = Math.min(box.bottom, innerHeight);
    const side = { left: box.x, right, top: box.y, bottom };
    const dragged = at(".flow-ghost", middle) || at(".flow-drawn", end) || at('[data-part="a"] > rect', middle);
    return { x, y, scale: box.width / width, side, dragged };
})()"""
FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


async def seen(console: ConsolePage, x: float = 0, y: float = 0) -> Any:
    """What is in sight, as soon as the picture has scrolled at least so many units right and down."""
    start = await console.run(SHOWN)

    async def look() -> Any:
        now = await console.run(SHOWN)
        far = [(now["x"] - start["x"]) * x, (now["y"] - start["y"]) * y]
        return now if all(moved >= wanted**2 for moved, wanted in zip(far, (x, y), strict=True)) else None

    return await console.soon(look, f"a picture {x}, {y} from {start}")


async def stays(console: ConsolePage) -> None:
    """The picture does not scroll."""
    await console.run(FRAMES)
    before = await console.run(SHOWN)
    await console.run(FRAMES)
    after = await console.run(SHOWN)
    assert (after["x"], after["y"]) == (before["x"], before["y"])


@pytest.mark.parametrize("kind", ["box", "line", "palette"])
async def test_the_picture_scrolls_while_something_is_dragged_at_its_edge(
    server: Server, console: ConsolePage, kind: str
) -> None:
    path = await drawn(server, console, nodes=placed(("a", 0, 0), ("b", 2000, 100)))
    await box(console, "a").click()
    parts = {
        "box": box(console, "a"),
        "line": output(console, "a"),
        "palette": offered(console, "If a condition holds"),
    }
    async with pressed(console, parts[kind]) as pointer:
        first = await console.run(SHOWN)
        side = first["side"]
        centre = {"x": (side["left"] + side["right"]) / 2, "y": (side["top"] + side["bottom"]) / 2}
        await pointer.to(centre["x"], centre["y"])
        await stays(console)
        await pointer.to(side["right"] - 10, centre["y"])
        now = await seen(console, x=300)
        assert now["y"] == first["y"]
        assert now["dragged"] == pytest.approx([pointer.x, pointer.y], abs=1)
        await pointer.to(centre["x"], side["bottom"] - 10)
        now = await seen(console, y=60)
        assert now["dragged"] == pytest.approx([pointer.x, pointer.y], abs=1)
        await pointer.to(centre["x"], centre["y"])
        await stays(console)
        await pointer.to(side["left"] + 10, side["top"] + 10)
        await seen(console, x=-40, y=-40)
        await pointer.to(side["left"] + 10, side["top"] - 10)
        await stays(console)
        await pointer.to(centre["x"], centre["y"])
        await console.run(FRAMES)
        last = await console.run(SHOWN)
        assert last["dragged"] == pytest.approx([pointer.x, pointer.y], abs=1)
    await stays(console)
    if kind == "line":
        await console.sees("Choose what follows Debug message.")
        return
    found = (await saved(server, console, path))["nodes"]
    place = found[0 if kind == "box" else -1]["meta"]
    wanted = [
        last[each] + (pointer_at - side[edge]) / last["scale"]
        for each, edge, pointer_at in (("x", "left", centre["x"]), ("y", "top", centre["y"]))
    ]
    assert [place["x"], place["y"]] == pytest.approx(wanted, abs=1)


async def test_the_picture_stops_when_the_pointer_is_released_or_escape_is_pressed(
    server: Server, console: ConsolePage
) -> None:
    path = await drawn(server, console, nodes=placed(("a", 0, 0), ("b", 300, 100)))
    async with pressed(console, box(console, "a")) as pointer:
        side = (await console.run(SHOWN))["side"]
        y = (side["top"] + side["bottom"]) / 2
        await pointer.to(side["left"] + 5, y)
        await seen(console, x=-100)
        await console.press("Escape")
        await stays(console)
        assert await console.at(css="svg.is-move").count() == 0
    await stays(console)
    assert (await server.call("GET", path))["nodes"][0]["meta"] == {"x": 0, "y": 0}
    async with pressed(console, offered(console, "If a condition holds")) as pointer:
        side = (await console.run(SHOWN))["side"]
        # What comes into the picture over its edge does not scroll it.
        for inside in (10, 20, 30):
            await pointer.to(side["right"] - inside, y)
            await console.at(css=".flow-ghost").shown()
            await stays(console)
        await pointer.to(side["right"] - 10, y)
        await seen(console, x=100)
    await console.at("textbox", "Expression").shown()
    await stays(console)


async def test_a_box_that_is_cut_off_is_shown_after_the_click(server: Server, console: ConsolePage) -> None:
    await drawn(server, console, nodes=placed(("a", 0, 0), ("b", 2000, 100)))
    start = await console.run(SHOWN)

    async def moved() -> Any:
        now = await console.run(SHOWN)
        return now if now["x"] != start["x"] else None

    await console.at(css=".flow-canvas svg").press("ArrowRight")
    start = await console.soon(moved, "a picture that has moved")
    assert -92 < start["x"] < 0  # the left of the box is out of sight, its middle is not
    async with pressed(console, box(console, "a")):
        await console.run(FRAMES)
        now = await console.run(SHOWN)
        assert (now["x"], now["y"]) == (start["x"], start["y"])
    await console.at("textbox", "Name of the part").shown()
    assert (await console.soon(moved, "a picture with the box"))["x"] < -92


EVENLY = """new Promise((done) => {
    const svg = document.querySelector(".flow-canvas svg"), frames = [];
    const watch = new MutationObserver(() => {
        const [x, , width] = svg.getAttribute("viewBox").split(" ").map(Number);
        frames.push({ at: document.timeline.currentTime, x: x * svg.clientWidth / width });
        // Frames of several lengths.
        const start = performance.now();
        while (performance.now() - start < (frames.length % 3) * 25);
        if (frames.length < 12) return;
        watch.disconnect();
        done(frames);
    });
    watch.observe(svg, { attributeFilter: ["viewBox"] });
})"""


async def test_the_picture_scrolls_evenly_by_time(server: Server, console: ConsolePage) -> None:
    await drawn(server, console, nodes=placed(("a", 0, 0), ("b", 300, 100)))
    await console.at("button", "Smaller").click()
    async with pressed(console, box(console, "a")) as pointer:
        side = (await console.run(SHOWN))["side"]
        await pointer.to(side["right"] - 5, (side["top"] + side["bottom"]) / 2)
        frames = await console.run(EVENLY)
        await console.press("Escape")
    for before, after in itertools.pairwise(frames):
        passed = min(after["at"] - before["at"], 100)
        assert after["x"] - before["x"] == pytest.approx(passed * 0.48, abs=0.1)
