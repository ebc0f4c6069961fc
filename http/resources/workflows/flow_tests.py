"""Dry runs of workflows: they are run with a given payload, and nothing outside of them changes."""

from __future__ import annotations

from trunkline.actors.engine.dry_run import DraftTest, TestFlow, tester_ref
from trunkline.actors.engine.views import TestResult
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import FLOW_PATH, Route
from trunkline.http.calls.verbs import post


async def test_flow(call: Call) -> Response:
    """Run a version of a workflow with a given payload, without any effect.

    The answer has the steps in their order, each with the payload after it, the messages of debug nodes, and the error
    if there was one. `stubs` take the place of nodes, and `definition` that of the version. With the same `time` and
    `seed` the result is the same.
    """
    service = call.service
    service.system.check_load()
    ref = tester_ref(call.application, call.ids["flow"])
    answer = await service.system.ask(ref, service.message(call, TestFlow))
    return json_response(call, 200, answer.value)


ROUTES: tuple[Route, ...] = (
    post(
        FLOW_PATH + "/test",
        "flow.test",
        "Run a version of a workflow with a given payload, without any effect",
        TestFlow,
        handler=test_flow,
        body=DraftTest,
        reply=TestResult,
        only_reads=True,
    ),
)
