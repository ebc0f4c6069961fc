"""Threads that wait for what a tenant chose: its name servers, its mails. Others find theirs meanwhile."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.neighbours import Tenant, neighbours
from tests.e2e.receivers import CallbackReceiver, MailServer, listening
from tests.e2e.sse_client import until
from tests.patience import PATIENCE_S
from trunkline.actors.core.runtime.threads import LOOKUPS, MAILS, places_of
from trunkline.actors.engine.runner import FlowRunner

APPLICATIONS = 15
RUNS = 3 * APPLICATIONS
"""More than Trio has threads."""
SLOW = b"slow.example"
SLOW_READER, READER = "slow@example.com", "reader@example.com"


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Names of one domain are answered when the event is set, all others stand for this machine."""
    answers = threading.Event()

    def getaddrinfo(host: Any, port: Any, *more: Any, **flags: Any) -> Any:
        if isinstance(host, bytes) and host == SLOW:
            answers.wait(PATIENCE_S)
            raise OSError("no answer")
        return found("127.0.0.1" if isinstance(host, bytes) else host, port, *more, **flags)

    found = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield answers
    answers.set()


async def press_all(tenant: Tenant, node: Any) -> None:
    """Start a run of each of many workflows of a tenant."""
    for application in tenant.applications:
        for _ in range(RUNS // APPLICATIONS):
            await tenant.press(await tenant.flow(application, node))


def call(host: str, port: int = 80) -> Any:
    config = {"method": "POST", "uriTemplate": f"http://{host}:{port}/", "bodyTemplate": "{}"}
    return {"type": "HttpNode", "config": config}


def mail(to: str) -> Any:
    config = {"toAddresses": [to], "subjectTemplate": "a", "bodyTemplate": "b", "resultPath": "data.sent"}
    return {"type": "StructureEmailNode", "config": config}


async def test_a_name_server_that_does_not_answer_holds_its_tenant_only(
    start_server: Any, name_server: threading.Event
) -> None:
    async with (
        listening(CallbackReceiver()) as receiver,
        start_server(callback_private_networks=True) as server,
    ):
        greedy, quiet = await neighbours(server, APPLICATIONS)
        runner = server.system.component(FlowRunner)
        flow = await quiet.flow(quiet.applications[0], call("quick.example", receiver.port))
        await press_all(greedy, call(SLOW.decode()))
        await until(lambda: runner.running == RUNS)
        await quiet.press(flow)
        await receiver.number(1)
        assert places_of(LOOKUPS).running == LOOKUPS.threads // 2
        name_server.set()
        await until(lambda: runner.running == 0)


async def test_mails_that_a_server_does_not_take_hold_their_tenant_only(start_server: Any) -> None:
    async with listening(MailServer(stalled=frozenset({SLOW_READER}))) as taken:
        settings = {"smtp_host": "127.0.0.1", "smtp_port": taken.port, "smtp_tls": "none"}
        limits = {"outgoing_timeout_s": PATIENCE_S}
        async with start_server(limits=limits, **settings) as server:
            greedy, quiet = await neighbours(server, APPLICATIONS)
            runner = server.system.component(FlowRunner)
            flow = await quiet.flow(quiet.applications[0], mail(READER))
            await press_all(greedy, mail(SLOW_READER))
            await until(lambda: runner.running == RUNS and taken.stalls >= MAILS.threads // 2)
            await quiet.press(flow)
            (arrived,) = await taken.number(1)
            assert arrived.recipients == [READER]
            assert places_of(MAILS).running_of(bytes.fromhex(greedy.id)) == MAILS.threads // 2
