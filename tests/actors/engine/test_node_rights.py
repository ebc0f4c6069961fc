"""What the authors of workflows need for nodes: every node that reaches out of the payload says so."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Final

import pytest

from trunkline.actors.engine.nodes import NODE_TYPES
from trunkline.actors.engine.settings import Config
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
FREE: Final = frozenset({"JWTDecodeNode", "HashNode", "ValidatePayloadNode"})
"""Types whose files reach out of the payload for others, or only for times and schemas."""


@pytest.mark.parametrize("type", sorted(NODE_TYPES))
def test_a_node_that_reaches_out_of_the_payload_needs_rights(type: str) -> None:
    source = inspect.getsource(sys.modules[NODE_TYPES[type].prepare.__module__])
    if type not in FREE and any(word in source for word in REACHES):
        assert NODE_TYPES[type].needs, "say in NEEDS of its file what its author must be allowed to do"


def test_what_nodes_need_are_operations_with_their_access() -> None:
    for type in NODE_TYPES.values():
        for need in type.needs:
            assert {*need.where, *need.unless} <= {*type.form.settings}
            if need.operation != NO_OPERATION:
                route = TABLE.by_operation[need.operation]
                assert (route.access, route.area) == (need.access, "application"), need


NEEDED: Final[tuple[tuple[str, dict[str, Any], set[str]], ...]] = (
    ("GetDeviceNode", {"includeState": True}, {"devices.get", "device.getCompositeState"}),
    ("GetDeviceNode", {"includeState": "true"}, {"devices.get"}),
    ("JWTCreateNode", {"credentialNameTemplate": 0}, {"credential.get"}),
    ("JWTVerifyNode", {"credentialNameTemplate": "{{data.name}}"}, {"credential.get"}),
    ("JWTVerifyNode", {"credentialNameTemplate": "", "secretTemplate": "s"}, set()),
    ("FileCreateNode", {"private": "yes"}, {"files.post"}),
    ("FileCreateNode", {"shouldOverwrite": True}, {"files.post", "file.patch"}),
    (
        "FileCreateNode",
        {"private": True, "shouldOverwrite": True},
        {"privateFiles.post", "privateFile.patch"},
    ),
    ("FileGetNode", {"private": 1}, {"file.get"}),
    ("DataTableDeleteRowNode", {"rowIdTemplate": "{{data.id}}"}, {"dataTableRow.delete"}),
    ("DataTableDeleteRowNode", {"queryTemplate": "{}"}, {"dataTableRows.delete"}),
    ("DataTableUpdateRowNode", {"rowIdTemplate": "a", "upsertCheck": True}, {"dataTableRow.patch"}),
    (
        "DataTableUpdateRowNode",
        {"rowSelectType": "query", "upsertCheck": True},
        {"dataTableRow.patch", "dataTableRows.query", "dataTableRows.post"},
    ),
    ("DeviceDeleteWorkflowNode", {"deviceIdTemplate": "{{data.id}}"}, {"device.delete"}),
    ("DeviceDeleteWorkflowNode", {"dataMethod": "query"}, {"devices.delete"}),
    ("DeleteEventNode", {"eventIdTemplate": "{{data.id}}"}, {"event.delete"}),
    ("DeleteEventNode", {"queryTemplate": "{}"}, {"events.delete"}),
    ("DeleteEventNode", {"queryTemplate": "{}", "deleteMultiple": False}, {"event.delete", "events.get"}),
    ("UpdateEventNode", {"targetEventIdTemplate": "{{data.id}}"}, {"event.patch"}),
    ("UpdateEventNode", {"targetEventIdTemplate": "a", "updateMultiple": True}, {"events.patch"}),
    ("UpdateEventNode", {"queryTemplate": "{}"}, {"event.patch", "events.get"}),
)


@pytest.mark.parametrize(("type", "config", "operations"), NEEDED)
def test_a_node_needs_what_its_configuration_does(
    type: str, config: dict[str, Any], operations: set[str]
) -> None:
    known = NODE_TYPES[type]
    own = Config(config, known.form.settings)
    assert {need.operation for need in known.needs if need.applies(own)} == operations
