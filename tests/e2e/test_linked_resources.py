"""What uses a credential, and what is deleted with a webhook or an integration."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Server


async def credential(server: Server, application: str, name: str) -> Any:
    config = {"keyJson": '{"private_key": "k"}'}
    body = {"name": name, "type": "gcp", "gcpConfig": config}
    return await server.call("POST", f"{application}/credentials", body, status=201)


async def test_a_credential_tells_which_integrations_use_it(server: Server) -> None:
    application = await server.application()
    gcp = await credential(server, application, "gcp")
    aws = await credential(server, application, "aws")
    for name, given in (("one", "gcp"), ("two", "gcp"), ("three", None)):
        body = {"name": name, "integrationType": "googlePubSub"}
        made = await server.call(
            "POST", f"{application}/integrations", body | ({} if given is None else {"credentialName": given})
        )
    links = f"{application}/credentials/{gcp['id']}/linkedResources"
    found = (await server.call("GET", links))["integrations"]
    assert [each["name"] for each in found["items"]] == ["one", "two"]
    assert (found["count"], found["totalCount"]) == (2, 2)
    other = f"{application}/credentials/{aws['id']}/linkedResources"
    assert (await server.call("GET", other))["integrations"]["items"] == []
    await server.call("PATCH", f"{application}/integrations/{made['id']}", {"credentialName": "gcp"})
    assert (await server.call("GET", links))["integrations"]["count"] == 3
    await server.call("DELETE", f"{application}/credentials/{gcp['id']}")
    await server.call("GET", links, status=404)


async def flow(server: Server, application: str, name: str, **parts: Any) -> str:
    made = await server.call("POST", f"{application}/flows", {"name": name, **parts}, status=201)
    return str(made["id"])


def node(id: str, **config: Any) -> dict[str, Any]:
    return {"id": id, "type": "HttpNode", "config": config}


async def test_a_credential_tells_which_workflows_use_it(server: Server) -> None:
    application = await server.application()
    gcp = await credential(server, application, "gcp")
    links = f"{application}/credentials/{gcp['id']}/linkedResources"
    by_name = await flow(
        server, application, "name", nodes=[node("a"), node("b", credentialNameTemplate="gcp")]
    )
    nested = {"auth": [{"credentialId": gcp["id"].upper()}]}
    by_id = await flow(server, application, "id", nodes=[node("a", **nested)])
    await flow(
        server, application, "other", nodes=[node("a", credentialNameTemplate="aws", uriTemplate="gcp")]
    )
    version = {"version": "v1", "nodes": [node("a", credentialNameTemplate="gcp")]}
    old = await flow(server, application, "old")
    made = await server.call("POST", f"{application}/flows/{old}/versions", version, status=201)
    found = await server.call("GET", links)
    assert [each["id"] for each in found["flows"]["items"]] == [by_id, by_name]
    assert [each["id"] for each in found["flowVersions"]["items"]] == [made["id"]]
    assert (found["flows"]["totalCount"], found["flowVersions"]["items"][0]["name"]) == (2, "old")
    assert "customNodes" not in found["flows"]["items"][0]
    found = await server.call("GET", f"{links}?includeCustomNodes=true")
    assert found["flows"]["items"][0]["customNodes"] == []
    await server.call("PATCH", f"{application}/credentials/{gcp['id']}", {"name": "renamed"})
    found = await server.call("GET", links)
    assert [each["id"] for each in found["flows"]["items"]] == [by_id], "only the id still names it"
    assert found["flowVersions"]["items"] == []


@pytest.mark.parametrize("noun", ["webhook", "integration"])
async def test_a_source_is_deleted_with_the_workflows_that_it_triggers(server: Server, noun: str) -> None:
    application = await server.application()
    body = {"name": "s"} | ({} if noun == "webhook" else {"integrationType": "googlePubSub"})
    path = f"{application}/{noun}s"
    kept, source, other = [(await server.call("POST", path, body, status=201))["id"] for _ in range(3)]
    triggered = [await flow(server, application, "a", triggers=[{"type": noun, "key": source.upper()}])]
    if noun == "integration":
        topic = {"type": "mqttTopic", "key": "a/b", "config": {"integrationId": source}}
        triggered.append(await flow(server, application, "b", triggers=[topic]))
    stay = [
        await flow(server, application, "c", triggers=[{"type": noun, "key": kept}]),
        await flow(server, application, "d", triggers=[{"type": "event", "key": source}]),
        await flow(server, application, "e"),
    ]
    # It is deleted with its workflows, or nothing is.
    async with server.client() as client:
        stale = {"If-Match": '"0123456789abcdef"'}
        refused = await client.delete(f"{path}/{source}?includeWorkflows=true", headers=stale)
        assert refused.status_code == 412
    assert (await server.call("GET", f"{application}/flows"))["totalCount"] == len(triggered) + len(stay)
    await server.call("DELETE", f"{path}/{other}?includeWorkflows=true")
    await server.call("DELETE", f"{path}/{source}?includeWorkflows=true")
    left = (await server.call("GET", f"{application}/flows"))["items"]
    assert sorted(each["id"] for each in left) == sorted(stay)
    await server.call("DELETE", f"{path}/{kept}")
    assert (await server.call("GET", f"{application}/flows"))["totalCount"] == len(stay)
    await server.call("DELETE", f"{path}/{source}?includeWorkflows=true", status=404)
