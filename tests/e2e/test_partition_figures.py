"""What operators see of a server with several partitions: figures of all its owners, and which of them is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import trio
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.conftest import NOT_BY_DOORS, Server, running_server
from tests.e2e.link_peer import linked
from tests.e2e.test_long_turns import HELD_MS, hold_the_loop
from tests.patience import PATIENCE_S
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.runtime.work import Work
from trunkline.http.processes import peers
from trunkline.http.processes.channel import Channel
from trunkline.http.processes.peers import ProcessPeers

OWNERS = ["partition-0", "partition-1", "partition-2"]


SHORT_WAITS_S = (0.2, 1, 5, 25)
"""How long the others are waited for, where one of them is silent: longer each time, for a busy machine."""


@pytest.fixture
async def divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """A server with three partitions, which wait for each other."""
    monkeypatch.setattr(peers, "TELL_S", PATIENCE_S)
    async with running_server(tmp_path / "data", partitions=3) as server:
        yield server


async def page(server: Server, path: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S, trust_env=False) as client:
        return await client.get(path)


async def families(server: Server) -> dict[str, Metric]:
    answer = await page(server, "/metrics")
    assert answer.status_code == 200
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def by_process(family: Metric, **labels: str) -> dict[str, float]:
    """The samples of a metric with these labels, by the process."""
    found: dict[str, float] = {}
    for sample in family.samples:
        rest = dict(sample.labels)
        process = rest.pop("process")
        if rest == labels:
            assert process not in found
            found[process] = sample.value
    return found


def parted(system: System, number: int) -> Channel:
    """Take the connection of a process to another one away. Call `closed` of what is returned to have it back."""
    assert isinstance(system.peers, ProcessPeers)
    channel = system.peers.doors[number].channel
    channel._connection = None
    return channel


@NOT_BY_DOORS
async def test_the_metrics_of_all_owners_are_in_one_answer(divided: Server) -> None:
    before = await families(divided)
    paths = [await divided.application(f"house {number}") for number in range(2)]
    for path in paths:
        device = await divided.device(path)
        await divided.call("POST", f"{device}/state", {"data": {"temp": 1}})
    after = await families(divided)
    assert by_process(after["trunkline_process_up"]) == dict.fromkeys(OWNERS, 1)
    assert by_process(after["trunkline_applications"]) == dict(zip(OWNERS, (0, 1, 1), strict=True))
    for family in after.values():
        assert {sample.labels["process"] for sample in family.samples} <= set(OWNERS), family.name
    assert set(by_process(after["trunkline_store_used_bytes"])) == set(OWNERS)

    def grown(name: str, **labels: str) -> list[float]:
        now, then = by_process(after[name], **labels), by_process(before[name], **labels)
        return [now.get(owner, 0) - then.get(owner, 0) for owner in OWNERS]

    assert grown("trunkline_calls", operation="device.sendState", status="200") == [0, 1, 1]
    assert grown("trunkline_requests_passed_on", to="partition-1")[0] == 2  # the device, and its state
    assert grown("trunkline_requests_passed_on", to="partition-2")[0] == 2
    assert grown("trunkline_questions", to="partition-1")[0] >= 1  # for these metrics, at least
    unsent = by_process(after["trunkline_channel_unsent_bytes"], to="partition-0")
    assert set(unsent) == {"partition-1", "partition-2"}


@NOT_BY_DOORS
async def test_a_connection_that_is_passed_on_is_counted(divided: Server) -> None:
    house = await divided.application("house")
    device = await divided.device(house)
    token, _ = await divided.device_token(device)
    place = divided.root.component(Places).find(bytes.fromhex(house.rpartition("/")[2]))
    async with linked(divided, device, token):
        counted = (await families(divided))["trunkline_connections_passed_on"]
    assert by_process(counted, to=f"partition-{place}")["partition-0"] == 1
    assert sum(sample.value for sample in counted.samples) == 1


async def test_every_process_can_tell_of_all(divided: Server) -> None:
    """Whoever is asked asks the others: the root is asked by HTTP, the others here."""
    for system in divided.systems:
        assert system.peers is not None
        told = await system.peers.ask_each("metrics")
        assert len(told) == 2
        assert all(told.values())


async def test_an_owner_that_does_not_answer_is_left_out_and_shown(
    divided: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    divided.systems[2].tells["metrics"] = trio.sleep_forever
    for wait_s in SHORT_WAITS_S:
        monkeypatch.setattr(peers, "TELL_S", wait_s)
        found = await families(divided)
        up = by_process(found["trunkline_process_up"])
        if up["partition-1"]:
            break
    assert up == dict(zip(OWNERS, (1, 1, 0), strict=True))
    assert set(by_process(found["trunkline_store_used_bytes"])) == {"partition-0", "partition-1"}
    parted(divided.systems[0], 1)
    found = await families(divided)
    assert by_process(found["trunkline_process_up"]) == dict(zip(OWNERS, (1, 0, 0), strict=True))


async def test_one_partition_has_no_label_of_its_process(tmp_path: Path) -> None:
    async with running_server(tmp_path / "data", partitions=1) as server:
        text = (await page(server, "/metrics")).text
    assert "process=" not in text
    for name in (
        "process_up",
        "applications",
        "requests_passed_on",
        "connections_passed_on",
        "questions",
        "channel_unsent_bytes",
    ):
        assert f"trunkline_{name}" not in text


async def test_a_process_that_cannot_reach_another_one_is_not_ready(divided: Server) -> None:
    assert (await page(divided, "/readyz")).json() == {"status": "ready"}
    channel = parted(divided.systems[0], 2)
    answer = await page(divided, "/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "incomplete", "partitions": ["partition-2"]}
    channel.closed("the other process is there again")
    with trio.fail_after(10):
        while (answer := await page(divided, "/readyz")).status_code != 200:
            pass
    assert answer.json() == {"status": "ready"}


async def test_the_longest_turns_of_all_owners_are_listed(
    divided: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here all owners share one loop, so each of them lists its turns, under its name."""
    await hold_the_loop(Work("call", "device.sendState", None, None))
    listed = await divided.call("GET", "/server/longTurns")
    assert {each["process"] for each in listed["items"] if each["cpuMs"] > HELD_MS - 2} == set(OWNERS)
    lengths = [each["durationMs"] for each in listed["items"]]
    assert lengths == sorted(lengths, reverse=True)
    assert listed["count"] == len(lengths) <= 32
    assert "missing" not in listed
    divided.systems[1].tells["longTurns"] = trio.sleep_forever
    for wait_s in SHORT_WAITS_S:
        monkeypatch.setattr(peers, "TELL_S", wait_s)
        listed = await divided.call("GET", "/server/longTurns")
        if "partition-2" not in listed["missing"]:
            break
    assert listed["missing"] == ["partition-1"]
