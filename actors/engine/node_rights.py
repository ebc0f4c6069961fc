"""What the author of a workflow must be allowed to do, for a node to do it in the author's name.

A node may do what the author could do by calling these operations (`people/organizations/mandates.py`). `WRITES` says
it for nodes whose effect no operation of its own names: what they store is of the workflow, or what they do leaves the
server. It needs no scope, only that the author may still change the application. The file of a type says its needs; a
type without any neither reads nor changes anything beyond the payload.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from trunkline.actors.engine.settings import ChoiceSetting, Config, FlagSetting, Setting
from trunkline.actors.engine.tools import choice_of, is_on, text_of
from trunkline.actors.engine.visit import NodeStep, Visit
from trunkline.actors.people.organizations.mandates import NO_OPERATION


class Need(NamedTuple):
    """An operation, and its access, read or write: of nodes in which all of `where` are set, and none of `unless`."""

    operation: str
    access: str
    where: tuple[Setting, ...] = ()
    unless: tuple[Setting, ...] = ()

    def applies(self, config: Config) -> bool:
        """Whether a node with this configuration needs it."""
        return all(_is_set(config, each) for each in self.where) and not any(
            _is_set(config, each) for each in self.unless
        )


def _is_set(config: Config, setting: Setting) -> bool:
    """Whether a node takes a field for set: a flag that is on, a choice that is not the default, and any text."""
    match setting:
        case FlagSetting():
            return is_on(config, setting)
        case ChoiceSetting():
            return choice_of(config, setting) != setting.options[0]
        case _:
            return bool(text_of(config, setting))


def may_read(operation: str, *where: Setting, unless: tuple[Setting, ...] = ()) -> Need:
    """To be allowed to call an operation that reads, where these settings are set and none of `unless`."""
    return Need(operation, "read", where, unless)


def may_write(operation: str, *where: Setting, unless: tuple[Setting, ...] = ()) -> Need:
    """To be allowed to call an operation that writes, where these settings are set and none of `unless`."""
    return Need(operation, "write", where, unless)


Needs = tuple[Need, ...]


def may_change_found(write: str, read: str, *, unless: tuple[Setting, ...]) -> Needs:
    """To be allowed to change what is found, and to find it, where none of these settings are set."""
    return may_write(write, unless=unless), may_read(read, unless=unless)


WRITES: Final[Needs] = (may_write(NO_OPERATION),)


def guarded(needs: Needs, config: Config, step: NodeStep) -> NodeStep:
    """The step of a node that is taken only if the authors of the run may take it."""
    if not needs:
        return step
    asked = tuple((need.operation, need.access) for need in needs if need.applies(config))

    def take(visit: Visit) -> Any:
        visit.run.check(asked)
        return step(visit)

    return take
