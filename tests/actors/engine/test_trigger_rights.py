"""What the author of a workflow must be allowed to read for a trigger are operations that read."""

from __future__ import annotations

from trunkline.actors.workflows.flows.triggers import TYPES
from trunkline.http.routes import TABLE


def test_the_rights_are_operations_that_read() -> None:
    for known in TYPES.values():
        for operation in known.reads:
            route = TABLE.by_operation[operation]
            assert (route.access, route.area) == ("read", "application"), operation


def test_what_starts_nothing_here_reads_nothing() -> None:
    for known in TYPES.values():
        if known.classes is not None or not known.is_started:
            assert known.reads == ()
