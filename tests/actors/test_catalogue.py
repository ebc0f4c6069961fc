"""The catalogue has everything that the packages define: what a `feature.py` forgets is an error here."""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, Final

import pytest

from trunkline.actors import boot, catalogue
from trunkline.actors.core.query.fields import Fields
from trunkline.actors.core.records.feature import Feature, Start, by_name
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.resource import Resource
from trunkline.actors.core.records.summary import chosen_counts
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.people.audit.messages import AUDIT_FIELDS
from trunkline.actors.platform.jobs.job import JobKind
from trunkline.actors.platform.jobs.runner import Jobs
from trunkline.actors.readers import read
from trunkline.http.routes import TABLE
from trunkline.limits.settings import Settings
from trunkline.store.flusher import Flusher

LISTED: Final[dict[type, Collection[Any]]] = {
    Kind: catalogue.KINDS.values(),
    Resource: catalogue.RESOURCES.values(),
    JobKind: catalogue.JOB_KINDS,
    Fields: (*catalogue.QUERY_FIELDS, AUDIT_FIELDS),  # of a filter that no call writes as an advanced query
    Feature: catalogue.FEATURES,
}


@pytest.fixture(scope="module")
def defined(checkout: Path) -> list[tuple[str, Any]]:
    """What the modules of `actors/` have at their top, each with its place."""
    files = (checkout / "actors").rglob("*.py")
    parts = (("trunkline", *file.relative_to(checkout).with_suffix("").parts) for file in files)
    modules = [importlib.import_module(".".join(each).removesuffix(".__init__")) for each in parts]
    return [(f"{each.__name__}.{name}", value) for each in modules for name, value in vars(each).items()]


@pytest.mark.parametrize("type", LISTED, ids=lambda each: each.__name__)
def test_what_a_package_defines_is_in_a_feature(defined: list[tuple[str, Any]], type: type) -> None:
    there = {id(value) for value in LISTED[type]}
    found = {place: value for place, value in defined if isinstance(value, type)}
    lost = sorted(place for place, value in found.items() if id(value) not in there)
    assert found, type
    assert not lost, f"name it in the feature.py of its package: {lost}"


def test_every_actor_is_in_a_feature(defined: list[tuple[str, Any]]) -> None:
    """Except the parts that the actor of a device is made of."""
    found = {value for _, value in defined if isinstance(value, type) and issubclass(value, Actor)}
    parts = {base for actor in catalogue.ACTORS for base in actor.__mro__[1:]}
    assert found - parts == set(catalogue.ACTORS)


def test_every_message_that_removes_what_is_too_old_is_counted() -> None:
    counted = [
        message for each in catalogue.FEATURES for expiry in each.expiries for message in expiry.counts
    ]
    expiring = {name for actor in catalogue.ACTORS for name in dir(actor) if name.startswith("on_expire_")}
    assert {"on_" + re.sub(r"(?<!^)(?=[A-Z])", "_", each.__name__).lower() for each in counted} == expiring
    assert len(counted) == len(set(counted))


def test_two_features_cannot_add_the_same_name() -> None:
    kind = Kind(name="probe", noun="probe", counted_as=None, audited_as=None)
    assert by_name([("probe", kind), ("probe", kind)]) == {"probe": kind}
    with pytest.raises(TypeError, match="probe: two features add this name"):
        by_name(
            [("probe", kind), ("probe", Kind(name="probe", noun="probe", counted_as=None, audited_as=None))]
        )


def test_every_name_of_the_audit_log_is_that_of_one_kind() -> None:
    names = [kind.audited_as for kind in catalogue.KINDS.values() if kind.audited_as is not None]
    assert sorted({*names}) == sorted(names)


def test_a_kind_says_how_it_is_counted_and_audited_and_every_count_is_shown() -> None:
    said = {"counted_as": None, "audited_as": None}
    for forgotten in said:
        left: dict[str, Any] = {name: None for name in said if name != forgotten}
        with pytest.raises(TypeError, match=forgotten):
            Kind(name="probe", noun="probe", **left)
    shows = chosen_counts(catalogue.COUNTED, None, None)
    assert all(shows(kind.counted_as) for kind in catalogue.KINDS.values() if kind.counted_as is not None)


def test_every_record_of_an_application_that_a_call_changes_is_named_in_the_audit_log() -> None:
    """A kind that is left out is one that is named by what it belongs to, or that has no id in a path."""
    for route in TABLE.routes:
        for part in route.path_parameters:
            kind = catalogue.KINDS.get(part.name)
            if route.audited and "application" in route.path and kind is not None:
                assert kind.audited_as is not None or kind.name in ("application", "flowVersion"), route.path


def test_no_component_of_a_feature_replaces_that_of_another(tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path / "data"))
    with boot.opened(settings) as system:
        start = Start(system, settings, b"secret" * 6, partial(read, system))
        added = [type(part) for feature in catalogue.FEATURES for part in feature.parts(start)]
        assert len(added) == len(set(added))


def test_every_component_that_works_in_the_background_is_run_and_stopped(tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path / "data"))
    with boot.opened(settings) as system:
        start = Start(system, settings, b"secret" * 6, partial(read, system))
        added = {type(part) for feature in catalogue.FEATURES for part in feature.parts(start)}
    run = {task for feature in catalogue.FEATURES for task in (*feature.first_tasks, *feature.tasks)}
    stopped = {task for feature in catalogue.FEATURES for task in feature.stops}
    # `boot` makes the one, and runs the other.
    assert {part for part in added if iscoroutinefunction(getattr(part, "run", None))} == run - {Jobs} | {
        Flusher
    }
    assert {part for part in added if iscoroutinefunction(getattr(part, "stop", None))} == stopped - {Jobs}
