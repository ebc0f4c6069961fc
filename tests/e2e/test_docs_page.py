"""The page of the API in a real browser, where one is installed: filled in for the demo, no filter is invented, a
login counts for the other calls, and a stream shows its events.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.browser import CHROMIUM, shown
from tests.e2e.conftest import Server
from tests.e2e.server_process import OWNER, started
from tests.patience import PAGE_TEST_S
from trunkline.http.routes import TABLE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(PAGE_TEST_S),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]

BLOCKS = "document.querySelectorAll('.opblock')"
GROUPS = "document.querySelectorAll('.opblock-tag')"
LISTED = "[...document.querySelectorAll('#operations li')]"
FIELDS = """Object.fromEntries([...block.querySelectorAll("tr[data-param-name]")].map(
    (row) => [row.dataset.paramName, (row.querySelector("input, select, textarea") || {}).value]))"""
VISIBLE = """[...block.querySelectorAll("tr[data-param-name]")].filter(
    (row) => row.offsetParent !== null).map((row) => row.dataset.paramName)"""


def block(operation: str, script: str) -> str:
    """A script about the block of an operation, which is `block` in it."""
    find = f"[...{BLOCKS}].find((each) => each.id.replaceAll('\\\\', '').endsWith('-{operation}'))"
    return f"((block) => {script})({find})"


OPEN = 'block.querySelector(".opblock-summary-control").click()'
EXECUTE = 'block.querySelector(".execute").click()'
STATUS = '(block.querySelector(".live-responses-table tbody .response-col_status") || {}).innerText'


async def groups_of(server: Server) -> dict[str, int]:
    """The number of operations of each group, in the order of the page."""
    document = await server.call("GET", "/openapi.json", token="")
    counts = dict.fromkeys((tag["name"] for tag in document["tags"]), 0)
    for item in document["paths"].values():
        for operation in item.values():
            counts[operation["tags"][0]] += 1
    return counts


async def test_each_group_of_the_page_opens_and_closes(server: Server, tmp_path: Path) -> None:
    async with shown(f"{server.url}/docs", tmp_path / "profile") as page:
        groups = await groups_of(server)
        assert sum(groups.values()) == len(TABLE.routes)
        await page.until(f"{GROUPS}.length === {len(groups)}")
        for position, count in enumerate(groups.values()):
            await page.run(f"{GROUPS}[{position}].click()")
            await page.until(f"{BLOCKS}.length === {count}")
            await page.run(f"{GROUPS}[{position}].click()")
            await page.until(f"{BLOCKS}.length === 0")


async def test_the_page_of_the_api_can_be_used_as_it_stands(tmp_path: Path) -> None:
    async with started(tmp_path / "data", "--demo") as server:
        await server.prints("The token is valid for a day")
        assert await server.listens()
        server.token = await server.log_in()
        (application,) = (await server.call("GET", "/applications"))["items"]
        async with shown(f"{server.url}/docs", tmp_path / "profile") as page:
            groups = await groups_of(server)
            await page.until(f"{GROUPS}.length === {len(groups)}")

            # The browser finds each operation in the list below the groups, and a click there opens it.
            listed = await page.run(f"{LISTED}.map((each) => each.textContent)")
            assert len(listed) == len(TABLE.routes)
            assert any("devices.get GET /applications/{applicationId}/devices" in each for each in listed)
            await page.run(
                f"{LISTED}.find((each) => each.textContent.includes(' devices.get ')).firstChild.click()"
            )
            await page.until(f"{BLOCKS}.length === {groups['Devices']}")
            await page.until(block("devices.get", 'block.querySelector("tr[data-param-name]") && true'))
            fields = await page.run(block("devices.get", FIELDS))
            assert fields["applicationId"] == application["id"]
            assert {"query", "tagFilter", "filter", "parentId", "deviceClass"} <= fields.keys()
            assert {name for name, value in fields.items() if value} == {
                *("applicationId", "page", "perPage", "sortField", "sortDirection"),
                *("queryDeleted", "excludeConnectionInfo", "tagsAsObject", "attributesAsObject"),
            }
            assert not {"_links", "_actions", "_embedded"} & set(
                await page.run(block("devices.get", VISIBLE))
            )

            # Each step draws all operations of the open groups again, so no more are open than are needed.
            async def turn(group: str) -> None:
                await page.run(f"{GROUPS}[{list(groups).index(group)}].click()")

            await turn("Devices")
            await turn("Log in")
            await page.until(f"{BLOCKS}.length === {groups['Log in']}")
            password = json.dumps(OWNER["TRUNKLINE_ADMIN_PASSWORD"])
            email = json.dumps(OWNER["TRUNKLINE_ADMIN_EMAIL"])
            await page.run(block("auth.authenticateUser", OPEN))
            await page.until(
                block("auth.authenticateUser", 'block.querySelector(".body-param__text") && true')
            )
            await page.run(
                block(
                    "auth.authenticateUser",
                    f"""{{
                        const text = block.querySelector(".body-param__text");
                        const {{ set }} = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value");
                        set.call(text, JSON.stringify({{ email: {email}, password: {password} }}));
                        text.dispatchEvent(new Event("input", {{ bubbles: true }}));
                        text.dispatchEvent(new Event("change", {{ bubbles: true }}));
                    }}""",
                )
            )
            await page.run(block("auth.authenticateUser", EXECUTE))
            assert await page.until(block("auth.authenticateUser", STATUS)) == "200"
            await page.until("document.querySelector('.authorize.locked') && true")

            await turn("Log in")
            await turn("Devices")
            await page.until(f"{BLOCKS}.length === {groups['Devices']}")
            await page.until(block("devices.get", 'block.querySelector(".execute") && true'))
            await page.run(block("devices.get", EXECUTE))
            assert await page.until(block("devices.get", STATUS)) == "200"

            await turn("Devices")
            await turn("States, commands and streams")
            await page.until(f"{BLOCKS}.length === {groups['States, commands and streams']}")
            await page.run(block("device.stateStream", OPEN))
            await page.until(
                block("device.stateStream", 'block.querySelector("tr[data-param-name]") && true')
            )
            await page.run(block("device.stateStream", EXECUTE))
            await page.until(
                "document.getElementById('stream-events').textContent.includes('event: deviceState')"
            )
            await page.run("document.getElementById('stream-stop').click()")
            assert await page.until(block("device.stateStream", STATUS)) == "200"
            assert await page.run("document.getElementById('stream').hidden")
        assert await server.terminate() == 0
