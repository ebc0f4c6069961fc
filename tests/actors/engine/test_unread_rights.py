"""A node whose authors cannot be read just now, as the machine is not heard that has them."""

from __future__ import annotations

from typing import Any, NoReturn

import trio
import trio.testing

from tests.actors.engine.flow_cases import BOUNDS, IDENTITY, NOW_MS, flow, node
from trunkline.actors.core.records.mandate import Mandate
from trunkline.actors.core.values.errors import Forbidden
from trunkline.actors.core.values.store_errors import outdated
from trunkline.actors.engine.dry_run import FlowTest, dry_run
from trunkline.actors.engine.visit import Run

STEPS = flow(node("n", "StoreValueNode", {"keyName": "a", "valueType": "incr", "value": "1"}))


async def _no_script(_script: str, _payload: Any) -> NoReturn:
    raise AssertionError("there is no script")


async def test_a_node_waits_until_it_is_known_what_its_authors_may_do(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def readable() -> None:
        await trio.sleep_until(known_s)

    def judge(_mandates: object, _asked: object) -> None:
        if trio.current_time() < known_s:
            raise outdated(0)
        raise Forbidden("it is known now")

    known_s = trio.current_time() + 3
    run = Run(BOUNDS, NOW_MS, 0, _no_script, IDENTITY, [], judge=judge, until_readable=readable)
    run.authors = [(Mandate("eve@example.com", ("all.User",)),)]
    shown = await dry_run(STEPS, FlowTest(data={}), run)
    assert shown["error"]["message"] == "it is known now"
    assert trio.current_time() >= known_s
