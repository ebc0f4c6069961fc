"""What ought to be stored, as plain dicts and lists: the model against which a simulation is checked.

An operation is applied here at the moment of the commit that holds it, in the order of turns.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.actors.probes import tally_key
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.actors.fleet.devices.state.head import Head
from trunkline.actors.platform.applications.keys import APPLICATION_KEY
from trunkline.store import keys
from trunkline.store.backup import verify
from trunkline.store.codec import decode
from trunkline.store.env import Store
from trunkline.store.snapshot import Snapshot

ATTRIBUTES = {"a": "number", "b": "number", "label": "string"}
_NUMBERS = {name: number for number, name in enumerate(ATTRIBUTES)}


@dataclass
class Device:
    """A device: its states by time, its newest values, its commands in order."""

    name: str
    deleted: bool = False
    points: dict[int, dict[int, Any]] = field(default_factory=dict)
    newest: dict[int, tuple[int, Any]] = field(default_factory=dict)
    commands: list[tuple[int, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def report(self, time_ms: int | None, data: dict[str, Any], now_ms: int) -> None:
        """A later report of one millisecond replaces the values that it carries, and no others.

        One without a time comes now, or a millisecond after the newest.
        """
        if time_ms is None:
            time_ms = max(now_ms, max(self.points, default=-1) + 1)
        for name, value in data.items():
            number = _NUMBERS[name]
            self.points.setdefault(time_ms, {})[number] = value
            if time_ms >= self.newest.get(number, (-1, None))[0]:
                self.newest[number] = (time_ms, value)
        self.counts["deviceState"] += 1


@dataclass
class Expected:
    """Everything that was committed. `moment` counts operations; a command carries the moment of its commit."""

    applications: dict[Ref, int] = field(default_factory=dict)
    """Applications that are there, with the number of their keys."""
    devices: dict[Ref, Device] = field(default_factory=dict)
    """Devices of these, also deleted ones."""
    gone: list[Ref] = field(default_factory=list)
    """Applications and devices that were deleted with their application: nothing of them may stay."""
    added: dict[Ref, list[int]] = field(default_factory=dict)
    """What was added to each tally."""
    moment: int = 0

    # What operations do.

    def create_application(self, ref: Ref) -> None:
        self.applications[ref] = 0

    def delete_application(self, ref: Ref) -> None:
        del self.applications[ref]
        inside = [device for device in self.devices if device.parent == ref.id]
        for device in inside:
            del self.devices[device]
        self.gone += [ref, *inside]

    def create_key(self, ref: Ref) -> None:
        self.applications[ref] += 1

    def delete_key(self, ref: Ref) -> None:
        self.applications[ref] -= 1

    def create_device(self, ref: Ref, name: str) -> None:
        self.devices[ref] = Device(name)

    def rename(self, ref: Ref, name: str) -> None:
        for device in self._present(ref):
            device.name = name

    def delete_device(self, ref: Ref) -> None:
        for device in self._present(ref):
            device.deleted = True

    def report(self, ref: Ref, states: list[tuple[int | None, dict[str, Any]]], now_ms: int) -> None:
        for device in self._present(ref):
            for time_ms, data in states:
                device.report(time_ms, data, now_ms)

    def command(self, refs: list[Ref], name: str) -> None:
        self.moment += 1
        for device in self._present(*refs):
            device.commands.append((self.moment, name))
            device.counts["deviceCommand"] += 1

    def connect(self, ref: Ref) -> None:
        for device in self._present(ref):
            device.counts["deviceConnect"] += 1

    def _present(self, *refs: Ref) -> list[Device]:
        """Devices; without those whose application was deleted in the same commit."""
        return [self.devices[ref] for ref in refs if ref in self.devices]

    def add(self, ref: Ref, by: int) -> None:
        self.added.setdefault(ref, []).append(by)

    # Questions.

    def has(self, ref: Ref) -> bool:
        """Whether the actor exists."""
        if ref.kind == "application":
            return ref in self.applications
        return ref in self.devices and not self.devices[ref].deleted

    def commands_since(self, ref: Ref, moment: int) -> list[str]:
        """The names of the commands that were committed after a moment."""
        return [name for at, name in self.devices[ref].commands if at > moment] if ref in self.devices else []

    def check(self, store: Store) -> None:
        """Assert that the store holds this and nothing else."""
        assert verify(store, partial(records.index_keys, KINDS)).problems == []
        with store.snapshot() as snapshot:
            there = {Ref("application", ROOT, id) for id, _ in records.scan(snapshot, APPLICATION, ROOT)}
            assert there == set(self.applications)
            for application, key_count in self.applications.items():
                assert records.total(snapshot, APPLICATION_KEY, application.id) == key_count
                inside = [device for ref, device in self.devices.items() if ref.parent == application.id]
                for kind, deleted in ((DEVICE, False), (DELETED_DEVICE, True)):
                    count = sum(device.deleted is deleted for device in inside)
                    assert records.total(snapshot, kind, application.id) == count
            for ref, device in self.devices.items():
                _check_device(snapshot, ref, device)
            for ref, added in self.added.items():
                raw = snapshot.get(keys.META, tally_key(ref))
                assert (sum(added), added) == (None if raw is None else tuple(decode(raw)))

    def check_gone(self, store: Store) -> None:
        """Assert that nothing is left of what was deleted, wherever in a key its id would stand."""
        ids = {ref.id for ref in self.gone}
        with store.snapshot() as snapshot:
            for db in keys.DATABASES:
                for key in snapshot.keys(db, b"", None):
                    assert not any(id in key for id in ids), (db, key.hex())


def _check_device(snapshot: Snapshot, ref: Ref, device: Device) -> None:
    kind = DELETED_DEVICE if device.deleted else DEVICE
    found = records.find(snapshot, kind, ref.parent, ref.id)
    assert found is not None
    assert found.doc["name"] == device.name
    points = {time_ms: point for part in snapshot.points(ref.id) for time_ms, point in part.rows()}
    assert points == device.points
    head = Head.read(snapshot, ref.id)
    assert head.values == device.newest
    logged = snapshot.range(keys.COMMANDS, ref.id, keys.prefix_end(ref.id))
    assert [decode(raw)["name"] for _, raw in logged] == [name for _, name in device.commands]
    counts: Counter[str] = Counter(head.counts)
    hours = keys.counts_key(ref.id, 0), keys.counts_key(ref.id, keys.HOUR_MAX)
    for _, raw in snapshot.range(keys.TIMELINE, *hours):
        counts.update(decode(raw))
    assert {name: counts[name] for name in device.counts} == dict(device.counts)
