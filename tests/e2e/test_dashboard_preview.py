"""What blocks would show in a dashboard before they are stored."""

from __future__ import annotations

from tests.e2e.conftest import Server
from tests.e2e.rows import api_token
from tests.e2e.test_dashboard_data import made
from tests.e2e.test_dashboards import other_user
from tests.e2e.test_reports import AT_MS, block, farm


async def test_blocks_are_previewed_before_they_are_stored(server: Server) -> None:
    application, north = await farm(server)
    config = {"segment": {"attribute": "temp", "deviceIds": ["{{ctx.device}}"]}}
    parameter = {"name": "device", "type": "deviceId", "defaultValue": north}
    path = await made(server, application, [], contextConfiguration=[parameter])
    before = await server.call("GET", path)
    body = {"blocks": [block(0, "gauge", "Newest", config), block(2, "event-list", "", {"query": "no"})]}
    for at in (path, f"{application}{path}"):
        answer = await server.call("POST", f"{at}/preview", {**body, "end": AT_MS}, status=200)
        newest, broken = answer["blocks"]
        assert (newest["position"], newest["title"]) == (0, "Newest")
        assert newest["parts"][0]["value"] == 20.5
        assert "query: is not JSON" in broken["problem"]
    assert await server.call("GET", path) == before
    wrong = {"blocks": [block(0, "gauge", "", {"gaugeType": "clock"})]}
    refusal = await server.call("POST", f"{path}/preview", wrong, status=400)
    assert "gaugeType" in refusal["message"]
    await server.call("POST", f"{path}/preview", {"blocks": []}, status=400)
    other = (await server.application("other")).rpartition("/")[2]
    # Who only reads dashboards cannot read by blocks of their own.
    token = await api_token(server, application, "applicationDashboard.data", "all.Application.read")
    await server.call("POST", f"{application}{path}/data", {}, token=token, status=200)
    await server.call("POST", f"{application}{path}/preview", body, token=token, status=403)
    # A block of an application that the token does not reach is refused alone.
    token = await api_token(server, application, "applicationDashboard.preview", "data.lastValueQuery")
    body["blocks"][1]["applicationId"] = other
    answer = await server.call("POST", f"{application}{path}/preview", body, token=token, status=200)
    assert ["problem" in each for each in answer["blocks"]] == [False, True]
    await server.call("POST", f"{path}/preview", body, token=await other_user(server), status=403)
