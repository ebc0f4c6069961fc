"""Each type of trigger says what the author of a workflow must be allowed to read for it."""

from __future__ import annotations

from trunkline.actors.engine.trigger_rights import TELLS_NOTHING_STORED, TRIGGER_RIGHTS
from trunkline.actors.workflows.flows.triggers import CLASSES, NEVER_STARTED, TRIGGERS
from trunkline.http.routes import TABLE


def test_each_type_that_starts_runs_here_says_what_its_author_must_read() -> None:
    started = TRIGGERS.keys() - CLASSES.keys() - NEVER_STARTED - {"direct"}
    assert TRIGGER_RIGHTS.keys() | TELLS_NOTHING_STORED == started
    assert not TRIGGER_RIGHTS.keys() & TELLS_NOTHING_STORED


def test_the_rights_are_operations_that_read() -> None:
    for asked in TRIGGER_RIGHTS.values():
        assert asked
        for operation, access in asked:
            route = TABLE.by_operation[operation]
            assert (route.access, route.area) == (access, "application"), operation
