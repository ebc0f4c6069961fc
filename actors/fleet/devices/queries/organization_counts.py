"""Counts of the applications of an organization: devices, payloads, and minutes of notebooks.

A member counts the applications that the roles allow to read. Messages and reads; the query strings and answers are
those of one application. Pure reads of a snapshot.
"""

from __future__ import annotations

from typing import Any

from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.structs import Message
from trunkline.actors.fleet.devices.queries.counts import CountRange, device_counts_of
from trunkline.actors.people.organizations.membership import applications_of, find_membership
from trunkline.actors.platform.applications.notebook_minutes import MinuteRange, notebook_minutes
from trunkline.actors.platform.applications.payload_counts import (
    PayloadCountRange,
    PayloadPeriods,
    payload_counts,
    payload_periods,
)


class CountOrgDevices(Message, frozen=True):
    """Devices per day of an organization."""

    org: bytes
    user: bytes
    query: CountRange
    now_ms: int


class CountOrgPayloads(Message, frozen=True):
    """Payloads of an organization by kind."""

    org: bytes
    user: bytes
    query: PayloadCountRange
    now_ms: int


class BreakDownOrgPayloads(Message, frozen=True):
    """Payloads of an organization for each hour or day."""

    org: bytes
    user: bytes
    query: PayloadPeriods
    now_ms: int


class CountOrgNotebookMinutes(Message, frozen=True):
    """The minutes of notebooks of an organization."""

    query: MinuteRange
    now_ms: int


def count_org_devices(reading: Reading, message: CountOrgDevices) -> dict[str, Any]:
    """Return the devices per day of an organization."""
    reading.check_time(is_long=True)
    applications = _applications(reading, message.org, message.user)
    return device_counts_of(reading, applications, message.query, message.now_ms)


def count_org_payloads(reading: Reading, message: CountOrgPayloads) -> dict[str, Any]:
    """Return the payloads of an organization by kind."""
    reading.check_time(is_long=True)
    applications = _applications(reading, message.org, message.user)
    return payload_counts(reading, applications, message.query, message.now_ms)


def break_down_org_payloads(reading: Reading, message: BreakDownOrgPayloads) -> dict[str, Any]:
    """Return the payloads of an organization for each hour or day."""
    reading.check_time(is_long=True)
    applications = _applications(reading, message.org, message.user)
    return payload_periods(reading, applications, message.query, message.now_ms)


def count_org_notebook_minutes(reading: Reading, message: CountOrgNotebookMinutes) -> dict[str, Any]:
    """Return the minutes of notebooks of an organization."""
    return notebook_minutes(reading, message.query.start, message.query.end, message.now_ms)


def _applications(reading: Reading, org: bytes, user: bytes) -> list[bytes]:
    membership = find_membership(reading.snapshot, org, user)
    return [] if membership is None else applications_of(reading.snapshot, membership)
