"""What the authors of workflows need for nodes: every node that reaches out of the payload is in the table."""

from __future__ import annotations

import inspect
import sys
from typing import Final

import pytest

from trunkline.actors.engine.node_rights import NODE_RIGHTS
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
        assert type in NODE_RIGHTS, "give it a row in NODE_RIGHTS"


def test_what_nodes_need_are_operations_with_their_access() -> None:
    assert NODE_RIGHTS.keys() <= NODE_TYPES.keys()
    for needs in NODE_RIGHTS.values():
        for need in needs:
            if need.operation != NO_OPERATION:
                route = TABLE.by_operation[need.operation]
                assert (route.access, route.area) == (need.access, "application"), need
