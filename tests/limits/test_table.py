"""Every limit is in one table with its unit and its reason; an invalid override is refused."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from trunkline.limits.errors import SettingsError
from trunkline.limits.table import RATE_CALLS_MAX, RATE_WINDOW_MAX_S, Limits, Rate

FIELDS = dataclasses.fields(Limits)
ABBREVIATED = {"s": "seconds", "ms": "milliseconds", "chars": "characters", "page": "items per page"}
# The length of a mailbox counts messages, the limit of a read entries, a replay events.
COUNTS_ITS_UNIT = ("length", "limit", "replay")


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_every_number_has_a_unit_and_a_reason(field: dataclasses.Field[Any]) -> None:
    assert field.metadata["unit"].strip()
    assert len(field.metadata["reason"].split()) >= 3
    assert field.metadata["reason"].endswith(".")


@pytest.mark.parametrize(
    "field", [f for f in FIELDS if not isinstance(f.default, Rate)], ids=lambda f: f.name
)
def test_the_name_of_a_number_ends_in_its_unit(field: dataclasses.Field[Any]) -> None:
    unit: str = field.metadata["unit"]
    plain = field.name
    for bound in ("_max", "_min", "_default"):
        plain = plain.removesuffix(bound)
    last = plain.rsplit("_", 1)[-1]
    assert plain.endswith(unit.replace(" ", "_")) or ABBREVIATED.get(last) == unit or last in COUNTS_ITS_UNIT


@pytest.mark.parametrize(
    ("name", "calls", "window_s", "per"),
    [
        ("send_state", 30, 15, "device"),
        ("send_command", 30, 15, "device"),
        ("set_connection_status", 30, 15, "device"),
        ("mqtt_publish", 30, 15, "device"),
        ("event_create", 15, 15, "application"),
        ("virtual_button", 100, 10, "virtual button"),
        ("embedded_export", 1, 300, "application"),
        ("notebook_export", 1, 900, "notebook"),
    ],
)
def test_the_throttles_of_the_api(name: str, calls: int, window_s: float, per: str) -> None:
    assert getattr(Limits(), name) == Rate(calls, window_s)
    assert next(f for f in FIELDS if f.name == name).metadata["per"] == per


def test_every_gate_of_the_api_lets_one_in() -> None:
    gates = {f.name: f for f in FIELDS if f.name.endswith("_concurrent_calls_max")}
    assert len(gates) == 14
    assert all(f.default == 1 and f.metadata["per"] for f in gates.values())


def test_the_sizes_and_shapes_of_the_api() -> None:
    limits = Limits()
    assert limits.time_series_bytes_max == 30_000_000
    assert limits.rows_bytes_max == 20_000_000
    assert limits.multipart_bytes_max == 10_000_000
    assert limits.file_bytes_max == 5_000_000_000
    assert limits.url_ttl_default_s == 900
    assert (limits.archive_age_min_days, limits.device_restore_days) == (31, 93)


def test_off_lifts_every_throttle_and_nothing_else() -> None:
    off = Limits.off()
    for field in FIELDS:
        expected = None if isinstance(field.default, Rate) else field.default
        assert getattr(off, field.name) == expected


def test_override_changes_what_it_names() -> None:
    limits = Limits().override(
        {
            "send_state": {"calls": 5, "window_s": 1.5},
            "event_create": "off",
            "mailbox_length_max": 7,
            "drain_s": 0.5,
            "state_keep_days": 0,
        }
    )
    assert limits.send_state == Rate(5, 1.5)
    assert limits.event_create is None
    assert (limits.mailbox_length_max, limits.drain_s) == (7, 0.5)
    assert limits.send_command == Limits().send_command
    assert Limits().override({}) == Limits()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"mailbox_lenght_max": 1}, "mailbox_lenght_max is not a limit; did you mean mailbox_length_max?"),
        ({"xyzzy": 1}, "xyzzy is not a limit; the documentation lists"),
        (
            {"mailbox_length_max": "many"},
            "mailbox_length_max is 'many'; give a whole number of messages, more than 0",
        ),
        ({"mailbox_length_max": 1.5}, "mailbox_length_max is 1.5; give a whole number"),
        ({"mailbox_length_max": True}, "mailbox_length_max is True; give a whole number"),
        ({"mailbox_length_max": 0}, "mailbox_length_max is 0;"),
        ({"state_keep_days": -1}, "state_keep_days is -1; give a whole number of days, 0 or more"),
        ({"state_keep_days": math.nan}, "state_keep_days is nan; give a whole number of days"),
        ({"drain_s": math.nan}, "drain_s is nan; give a number of seconds"),
        ({"drain_s": math.inf}, "drain_s is inf;"),
        ({"drain_s": -1}, "drain_s is -1;"),
        (
            {"send_state": 30},
            'send_state is 30, which is not a valid rate; give {calls = 30, window_s = 15} or "off"',
        ),
        ({"send_state": {"calls": 30}}, "send_state has the keys ['calls'];"),
        (
            {"send_state": {"calls": 0, "window_s": 15}},
            "send_state.calls is 0; give a whole number from 1 to",
        ),
        ({"send_state": {"calls": 1, "window_s": "15"}}, "send_state.window_s is '15'; give seconds"),
        ({"send_state": {"calls": 1, "window_s": math.nan}}, "send_state.window_s is nan;"),
        ({"send_state": {"calls": 1, "window_s": 61}}, "send_state.window_s is above actor_idle_s"),
        (
            {"body_bytes_max": 2**40},
            "body_bytes_max is above journal_bytes_max (67108864); lower it or raise the other",
        ),
        ({"arrival_window_bytes": 2**27}, "arrival_window_bytes is above a sixth of arrivals_bytes_max"),
    ],
)
def test_a_wrong_override_is_refused_in_one_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Limits().override(changes)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_an_idle_actor_forgets_no_throttle() -> None:
    assert Limits().override(
        {"send_state": {"calls": 1, "window_s": 90}, "actor_idle_s": 90}
    ).send_state == Rate(1, 90)
    with pytest.raises(SettingsError, match="actor_idle_s"):
        Limits().override({"actor_idle_s": 5})


@pytest.mark.parametrize("calls", [0, -1, True, 1.0, RATE_CALLS_MAX + 1])
def test_a_rate_of_no_or_too_many_calls_is_refused(calls: Any) -> None:
    with pytest.raises(SettingsError):
        Rate(calls, 1.0)


@pytest.mark.parametrize("window_s", [0, -1.0, math.inf, math.nan, True, RATE_WINDOW_MAX_S + 1])
def test_a_rate_over_no_or_endless_time_is_refused(window_s: Any) -> None:
    with pytest.raises(SettingsError):
        Rate(1, window_s)
