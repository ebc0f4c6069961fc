"""An application with every kind of resource that is exported, imported and exported again is the same application."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Server
from tests.e2e.test_bundles import ALL, export
from tests.e2e.test_imports import imported, send, without_ids
from tests.e2e.whole_application import SECRET, Whole, whole_application
from trunkline.actors.connections.integrations.resource import INTEGRATION
from trunkline.actors.core.records.export_lines import REMOVED
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.keyring import Keyring, sealed_values
from trunkline.store.snapshot import Snapshot


async def test_the_third_generation_is_the_first_one_with_other_ids(server: Server) -> None:
    whole = await whole_application(server)
    first = await export(server, whole.path, **ALL)
    second = await export(server, await imported(server, first.content), **ALL)
    third = await export(server, await imported(server, second.content), **ALL)
    assert without_ids(first) == without_ids(second) == without_ids(third)
    # No id of the first application is left in lines; in contents ids stay as they are.
    lines = b"".join(text for name, text in second.entries().items() if name.endswith((".jsonl", ".json")))
    for label, id in whole.ids.items():
        assert id.encode() not in lines.lower(), label
    # What had a password has one that nobody knows.
    (dashboard,) = second.resource("Dashboard")
    for password in (REMOVED, SECRET):
        query = {"password": password}
        await server.call("GET", f"/dashboards/{dashboard.id}", token="", status=401, params=query)


async def test_without_devices_all_the_rest_is_imported(server: Server) -> None:
    whole = await whole_application(server)
    bundle = await export(server, whole.path)
    path = await imported(server, bundle.content)
    groups = (await server.call("GET", f"{path}/experience/groups"))["items"]
    assert [group["deviceIds"] for group in groups] == [[], []]
    again = await export(server, path)
    assert again.manifest.resources == bundle.manifest.resources
    # What is inside of texts and configurations stays, as when the devices are deleted.
    for name in ("Flow", "Dashboard", "ResourceJob"):
        assert whole.ids["pump"] in again.archive.read(f"resources/{name}.jsonl").decode()


@pytest.mark.parametrize("behavior", ["retain", "replace"])
async def test_an_import_into_the_application_itself_changes_nothing(server: Server, behavior: str) -> None:
    whole = await whole_application(server)
    secrets = await integration_secrets(server, whole)
    bundle = await export(server, whole.path, **ALL)
    answer = await send(server, whole.path, bundle.content, options={"conflictBehavior": behavior})
    assert answer.status_code == 200, answer.text
    assert without_ids(await export(server, whole.path, **ALL)) == without_ids(bundle)
    # Secrets that no bundle has stay as they are.
    assert await integration_secrets(server, whole) == secrets
    query = {"password": SECRET}
    await server.call("GET", f"/dashboards/{whole.ids['dashboard']}", token="", params=query)


async def integration_secrets(server: Server, whole: Whole) -> list[str]:
    """The secrets of all integrations of the application in clear text, by their paths."""
    name, prefix = (
        INTEGRATION.name,
        keys.record_prefix(INTEGRATION.name, bytes.fromhex(whole.ids["application"])),
    )
    keyring = server.system.component(Keyring)

    def read(snapshot: Snapshot) -> list[str]:
        return [
            f"{each.field} {keyring.unseal(each.value, kind=name, id=bytes(key[-12:]), field=each.field)}"
            for key, raw in snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix))
            for each in sealed_values(decode(raw))
        ]

    found = await server.system.read(read)
    assert "websocketConfig.headers.1.headerValue" in " ".join(found)
    return found
