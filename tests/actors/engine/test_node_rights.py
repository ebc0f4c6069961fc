"""What the authors of workflows need for nodes: every node that reaches out of the payload says so."""

from __future__ import annotations

import inspect
import sys
from typing import Final

import pytest

from trunkline.actors.engine.nodes import NODE_TYPES
from trunkline.actors.people.organizations.mandates import NO_OPERATION
from trunkline.http.routes import TABLE

REACHES: Final = (
    "visit.world",
    "visit.read",
    "visit.ask",
    "creating(",
    "finding(",
    "credential_of",
    "run.world",
)
FREE: Final = frozenset(
    {"JWTCreateNode", "JWTDecodeNode", "JWTVerifyNode", "HashNode", "ValidatePayloadNode"}
)
"""Types that only use what the application keeps for the server: credentials that no node shows, times and schemas."""


@pytest.mark.parametrize("type", sorted(NODE_TYPES))
def test_a_node_that_reaches_out_of_the_payload_needs_rights(type: str) -> None:
    source = inspect.getsource(sys.modules[NODE_TYPES[type].prepare.__module__])
    if type not in FREE and any(word in source for word in REACHES):
        assert NODE_TYPES[type].needs, "say in NEEDS of its file what its author must be allowed to do"


def test_what_nodes_need_are_operations_with_their_access() -> None:
    for type in NODE_TYPES.values():
        for need in type.needs:
            assert {need.where, need.unless} <= {None, *type.form.settings}
            if need.operation != NO_OPERATION:
                route = TABLE.by_operation[need.operation]
                assert (route.access, route.area) == (need.access, "application"), need
