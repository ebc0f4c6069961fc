"""Compiled workflows, kept as long as they are used and do not change."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import Final, NamedTuple

import msgspec

from trunkline.actors.core.formulas import price
from trunkline.actors.core.formulas.price import computed
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.mandate import mandates_of
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.runtime.computing import compute
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.core.values.global_values import global_values
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.engine.program import compile_program
from trunkline.actors.engine.share import Share
from trunkline.actors.engine.visit import CustomNode, FindProgram, Program
from trunkline.actors.workflows.flows.changes import FlowChanges
from trunkline.actors.workflows.flows.definition import trigger_at
from trunkline.actors.workflows.flows.kind import AUTHORS, CLASSES, DEFAULT, FLOW
from trunkline.actors.workflows.flows.versions import find_version
from trunkline.actors.workflows.triggers.queue import Queued
from trunkline.store import keys
from trunkline.store.codec import decode, decode_in_parts, encode

KEPT_MAX: Final = 1_000
"""Compiled versions in memory."""
INLINE_BYTES_MAX: Final = 131_072
"""Bytes of a stored definition that is made ready in the event loop."""
_NOTHING: Final = encode({})


class CompiledFlow(msgspec.Struct, frozen=True):
    """A version of a workflow that can be run. `version_id` has zero bytes for `develop`."""

    flow: bytes
    name: str
    flow_class: str
    version: str
    version_id: bytes
    is_enabled: bool
    triggers: list[Doc]
    globals: Doc
    custom_node: Doc
    program: Program
    identity: Doc
    """What nodes may know of the workflow."""
    find_program: FindProgram
    """Finds the custom nodes of its application."""

    def trigger(self, index: int, type: str, key: str) -> int | None:
        """The trigger at `index`, or where it is now if the definition has changed; None if it is gone."""
        return trigger_at(self.triggers, index, type, key)


class _Made(NamedTuple):
    """What is made of the stored bytes of a definition."""

    stored: bytes
    triggers: list[Doc]
    globals: Doc
    custom_node: Doc
    program: Program


def _make(stored: bytes) -> _Made:
    price.spend(len(stored) * price.INLINE_STEPS // INLINE_BYTES_MAX)
    definition: Doc = decode_in_parts(stored, partial(price.spend, 1))
    return _Made(
        stored,
        definition.get("triggers", []),
        global_values(definition.get("globals", [])),
        definition.get("customNodeConfig") or {},
        compile_program(definition),
    )


class Programs:
    """The compiled workflows of one system. A component."""

    def __init__(self, system: Host) -> None:
        self._system = system
        self._epoch = -1
        self._found: OrderedDict[tuple[bytes, bytes, str], CompiledFlow] = OrderedDict()
        system.component(FlowChanges).listen(self._drop)
        system.forgotten.append(self._drop)

    def get(self, application: bytes, flow: bytes, version: str | None) -> CompiledFlow | None:
        """The version of this name, or the default version; None if there is none.

        With a budget of work (`core/formulas/price.py`) it raises `TakesLong` for a definition that is long to make.
        """
        if self._epoch != self._system.journal.epoch:
            self._epoch = self._system.journal.epoch
            self._found.clear()
        place = (application, flow, version or DEFAULT)
        found = self._found.get(place)
        if found is None:
            found = self._compiled(*place)
            if found is None:
                return None
            self._found[place] = found
            if len(self._found) > KEPT_MAX:
                self._found.popitem(last=False)
        else:
            self._found.move_to_end(place)
        return found

    async def get_for_run(
        self, entry: Queued, version: str | None, owners: Owners, share: Share
    ) -> CompiledFlow | None:
        """The same for a run that has the turn. A long definition is made in a thread, while others have the turn."""
        budget = price.Budget(owners.of(entry.application))
        while True:
            try:
                with price.charged(budget):
                    return self.get(entry.application, entry.flow, version)
            except price.TakesLong as long:
                async with share.outside():
                    await compute(budget, long)

    def custom_node(self, application: bytes, flow: bytes, version: str | None) -> CustomNode | None:
        """The custom node, in the version of this name, or in its default version; None if there is none."""
        found = self.get(application, flow, version)
        if found is None or found.flow_class != "customNode":
            return None
        starts = [at for at, each in enumerate(found.triggers) if each["type"] == "customNodeStart"]
        if not starts:
            return None
        return CustomNode(found.program, starts[0], found.globals, found.custom_node)

    def _compiled(self, application: bytes, flow: bytes, named: str) -> CompiledFlow | None:
        get = self._system.journal.get
        raw = records.raw_of(get, FLOW, application, flow)
        if raw is None:
            return None
        record: Doc = decode(raw)
        version = find_version(get, application, flow, record, named)
        if version is None:
            return None
        stored = get(keys.FLOWS, keys.flow_definition_key(application, flow, version.id))
        made = self._made(stored or _NOTHING)
        saved = record if version.id == ROOT else version.doc
        identity = {
            "applicationId": application.hex(),
            "flowId": flow.hex(),
            "flowName": record["name"],
            "flowVersion": version.name,
        }
        return CompiledFlow(
            flow,
            record["name"],
            record["flowClass"],
            version.name,
            version.id,
            record["enabled"] and version.doc.get("enabled", True) and record["flowClass"] in CLASSES,
            made.triggers,
            made.globals,
            made.custom_node,
            made.program._replace(flow=flow.hex(), mandates=mandates_of(saved.get(AUTHORS))),
            identity,
            partial(self.custom_node, application),
        )

    def _made(self, stored: bytes) -> _Made:
        """A definition, decoded and made ready at the price of its bytes: a long one in a thread."""
        while True:
            made: _Made = computed(_make, stored)
            if (budget := price.current()) is not None:
                budget.keep()
            if made.stored == stored:
                return made  # else it was saved anew, while a thread was at the one before

    def _drop(self, *place: bytes) -> None:
        """An application is deleted, or one of its workflows has changed."""
        for found in [each for each in self._found if each[: len(place)] == place]:
            del self._found[found]
