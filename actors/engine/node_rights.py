"""What the author of a workflow must be allowed to do, for a node to do it in the author's name.

A node may do what the author could do by calling these operations (`people/organizations/mandates.py`). `WRITES` says
it for nodes whose effect no operation of its own names: what they store is of the workflow, or what they do leaves the
server. It needs no scope, only that the author may still change the application. The file of a type says its needs; a
type without any neither reads nor changes anything beyond the payload.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from trunkline.actors.engine.settings import Setting
from trunkline.actors.engine.visit import NodeStep, Visit
from trunkline.actors.people.organizations.mandates import NO_OPERATION


class Need(NamedTuple):
    """An operation, and its access, read or write; for some only of a node with a setting, or without it."""

    operation: str
    access: str
    where: Setting | None = None
    unless: Setting | None = None

    def applies(self, config: Mapping[str, Any]) -> bool:
        """Whether a node with this configuration needs it."""
        if self.unless is not None:
            return not config.get(self.unless.name)
        return self.where is None or bool(config.get(self.where.name))


def may_read(operation: str, where: Setting | None = None, unless: Setting | None = None) -> Need:
    """To be allowed to call an operation that reads, where a setting is set or unless it is."""
    return Need(operation, "read", where, unless)


def may_write(operation: str, where: Setting | None = None, unless: Setting | None = None) -> Need:
    """To be allowed to call an operation that writes, where a setting is set or unless it is."""
    return Need(operation, "write", where, unless)


Needs = tuple[Need, ...]

WRITES: Final[Needs] = (may_write(NO_OPERATION),)


def guarded(needs: Needs, config: Mapping[str, Any], step: NodeStep) -> NodeStep:
    """The step of a node that is taken only if the authors of the run may take it."""
    if not needs:
        return step
    asked = tuple((need.operation, need.access) for need in needs if need.applies(config))

    def take(visit: Visit) -> Any:
        visit.run.check(asked)
        return step(visit)

    return take
