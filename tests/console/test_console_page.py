"""The page of these tests uses elements as a person does, and no fault of a page passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.console.console_page import ConsolePage, console_page
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow

FORM = """{
    const make = (tag, more, ...inner) => {
        const made = Object.assign(document.createElement(tag), more);
        made.append(...inner);
        return made;
    };
    const name = make("input", {});
    const kind = make("select", {}, make("option", { value: "1" }, "one"), make("option", { value: "2" }, "two"));
    const said = make("output", {});
    const save = make("button", { onclick: () => { said.textContent = `${name.value}, ${kind.value}`; } }, "Save");
    name.onkeydown = (event) => { if (event.key === "Enter") said.textContent = "entered"; };
    document.body.replaceChildren(
        make("label", {}, "Name", name), make("label", {}, "Kind", kind), save, said,
        make("section", { ariaLabel: "Second", role: "region" }, make("button", {}, "Save")),
    );
}"""


async def test_a_form_is_filled_as_by_a_person(page: ConsolePage) -> None:
    await page.run(FORM)
    await page.at("textbox", "Name").fill("pump")
    await page.at("textbox", re.compile("^Na")).fill("valve")
    await page.at("combobox", "Kind").choose("two")
    await page.at("button", "Save").click()
    await page.at(css="output").says("valve, 2")
    await page.at("button", "Save").counts(2)
    await page.at("region", "Second").at("button", "Save").counts(1)
    await page.at("textbox", "Name").click()
    await page.press("Control+a")
    await page.type("new")
    await page.at("textbox", "Name").holds("new")
    await page.press("Enter")
    await page.sees("entered")


async def test_a_click_that_something_else_gets_is_stopped_and_repeated(page: ConsolePage) -> None:
    await page.run(FORM)
    await page.run("""{
        const [save, other] = document.querySelectorAll("button");
        other.onclick = () => { throw new Error("clicked in place of the other"); };
        const swap = () => {
            const place = save.getBoundingClientRect();
            other.style.cssText = `position: fixed; left: ${place.x}px; top: ${place.y}px; width: 500px`;
            save.style.marginLeft = "600px";
        };
        addEventListener("mousemove", swap, { once: true });
    }""")
    await page.at("button", "Save").click()
    await page.at(css="output").says(", 1")


FAULTS = {
    "console.error": ("void console.error('broken')", "console.error: broken"),
    "an exception": ("void setTimeout(() => { throw new Error('nobody caught it'); })", "nobody caught it"),
    "a rejection": ("void Promise.reject(new Error('nobody awaited it'))", "nobody awaited it"),
    "a call that is refused": ("fetch('/no/such').then(() => true)", "status of 404"),
    "an image of somebody else": (
        "void (new Image().src = 'http://localhost:1/picture.png')",
        "img-src forbids http://localhost:1",
    ),
    "a call to somebody else": (
        "fetch('http://localhost:1/').catch(() => true)",
        "connect-src forbids http://localhost:1",
    ),
    "a style attribute": (
        "void document.body.setAttribute('style', 'color: red')",
        "style-src-attr forbids inline",
    ),
    "HTML from a text": (
        "(() => { try { document.body.innerHTML = '<b>x</b>'; } catch { return true; } })()",
        "require-trusted-types-for forbids trusted-types-sink",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_does_not_pass(name: str, page: ConsolePage) -> None:
    script, told = FAULTS[name]
    async with page.expecting(re.escape(told), "."):
        await page.run(script)


async def test_a_fault_that_comes_late_is_waited_for(page: ConsolePage) -> None:
    async with page.expecting("late"):
        await page.run("void setTimeout(() => console.error('late'), 100)")


async def test_a_request_to_somebody_else_does_not_pass(
    chromium: None, server: Server, tmp_path: Path
) -> None:
    """Also where no policy forbids it, as on the page of the API documentation."""
    async with console_page(server.url, tmp_path) as page:
        await page.command("Page.navigate", ends_with="Page.loadEventFired", url=f"{server.url}/openapi.json")
        async with page.expecting("a request leaves the origin: http://localhost:1/", "."):
            await page.run("fetch('http://localhost:1/').catch(() => true)")


async def test_a_fault_ends_the_test(chromium: None, server: Server, tmp_path: Path) -> None:
    with pytest.RaisesGroup(
        pytest.RaisesExc(AssertionError, match="nobody caught it"), flatten_subgroups=True
    ):
        async with console_page(server.url, tmp_path) as page:
            await page.run("void setTimeout(() => { throw new Error('nobody caught it'); })")


async def test_the_libraries_run_under_the_policy(page: ConsolePage) -> None:
    """A component with a hook, a signal, an event and a chart."""
    script = """Promise.all(["preact", "hooks", "htm", "signals", "uplot"].map(
        (name) => import(`/console/vendor/${name}.mjs`)))
    .then(([{ h, render }, { useState, useEffect, useRef }, { default: htm }, { signal }, { default: uPlot }]) => {
        const html = htm.bind(h);
        const shared = signal(1);
        const Part = () => {
            const [own, setOwn] = useState(1);
            const place = useRef();
            useEffect(() => {
                const data = [[1, 2, 3], [4, 5, 6]];
                const options = { width: 200, height: 100, title: "<b>t</b>", series: [{}, { label: "a" }] };
                const chart = new uPlot(options, data, place.current);
                return () => chart.destroy();
            }, []);
            const both = () => { setOwn(own + 1); shared.value += 10; };
            return html`<div style="color: red"><button onClick=${both}>Count</button>
                <output style=${{ color: "blue" }}>${own} ${shared}</output><div ref=${place} /></div>`;
        };
        document.body.replaceChildren();
        render(html`<${Part} />`, document.body);
    })"""
    await page.run(script)
    await page.at("button", "Count").click()
    await page.at(css="output").says("2 11")
    await page.at(css="canvas").shown()
    await page.at(css=".u-title").says("<b>t</b>")
