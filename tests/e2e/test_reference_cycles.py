"""Calls leave no reference cycles: only the garbage collector would free these, and it stops everybody meanwhile."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from pathlib import Path

import trio
import trio.testing

from tests.e2e.conftest import EMAIL, PASSWORD, running_server
from tests.e2e.mqtt_house import house_in
from tests.e2e.sse_client import until
from trunkline.actors.core.outgoing.mail_policy import MAIL_POLICY
from trunkline.actors.fleet.devices.commands.links import Links
from trunkline.bench.link_client import LinkClient, running
from trunkline.bench.neighbours.quiet import QuietTenant
from trunkline.bench.neighbours.tenant import Account, Tenant

PERIOD_S = 1.0
CALLS_MIN = 30
"""Calls of ten kinds; with a cycle for each call, or for each of a kind, there would be more than OBJECTS_MAX."""
OBJECTS_MAX = 10


def found() -> Counter[str]:
    """The types of the objects that only the collector could free."""
    gc.collect()
    types = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage)
    gc.garbage.clear()
    return types


@contextmanager
def kept_garbage() -> Iterator[None]:
    """What only the collector could free is kept for `found`."""
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


CONNECTIONS = 5
PARTS = ("MqttSession", "Subscribing", "Publishing", "SessionQueue", "LinkSession", "Link", "WebSocket")


async def test_devices_that_leave_leave_no_reference_cycles(tmp_path: Path) -> None:
    """A fleet that connects again and again would keep all that its connections had."""
    async with house_in(tmp_path / "data") as house:
        token, _ = await house.server.device_token(house.device)
        session = {"session_expiry_interval": 60}

        async def come_and_go() -> None:
            for clean_start in (True, False):
                properties = {} if clean_start else session
                async with house.client(clean_start=clean_start, properties=properties) as client:
                    await client.subscribe(f"trunkline/{house.id}/command")
                    await client.publish(f"trunkline/{house.id}/state", b'{"data": {"temp": 1}}', 1)
                    await client.goodbye()
                    assert await client.next() is None
            async with running(LinkClient(house.server.url, house.device, token)) as link:
                await link.send_state({"temp": 2})
                await link.settled()

        def none_is_open() -> bool:
            system = house.server.system
            return not (len(system.component(Links)) or system.journal.pending_batches)

        await come_and_go()
        await until(none_is_open)
        with kept_garbage():
            for _ in range(CONNECTIONS):
                await come_and_go()
            await until(none_is_open)
            await trio.testing.wait_all_tasks_blocked()
            names = found()
    assert not [name for name in names if name.rpartition(".")[2] in PARTS], names.most_common()


def test_mails_leave_no_reference_cycles() -> None:
    with kept_garbage():
        for _ in range(CONNECTIONS):
            message = EmailMessage(policy=MAIL_POLICY)
            message.set_content("a text")
            message.add_alternative("<p>a text</p>", subtype="html")
            assert b"text/html" in message.as_bytes()
            del message
        assert not [each for each in found() if "email" in each or each == "builtins.type"]


async def test_calls_leave_no_reference_cycles(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path / "data", trust_forwarded_for=True) as server,
        trio.open_nursery() as nursery,
    ):
        tenant = await Tenant.sign_in(server.url, Account(EMAIL, PASSWORD), "10.1.0.1", 1)
        quiet = await QuietTenant.prepare(tenant, nursery)
        await quiet.measure(PERIOD_S)
        with kept_garbage():
            calls = await quiet.measure(PERIOD_S)
            garbage = found()
        quiet.close()
        tenant.close()
        nursery.cancel_scope.cancel()
    assert sum(kind.calls - sum(kind.errors.values()) for kind in calls.values()) > CALLS_MIN
    assert garbage.total() <= OBJECTS_MAX, garbage.most_common()
