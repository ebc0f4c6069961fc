"""A type of node, as its file declares it: what prepares its nodes, what editors show of it, what its nodes need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from trunkline.actors.engine.node_rights import Needs, guarded
from trunkline.actors.engine.settings import Config, Setting
from trunkline.actors.engine.visit import NodeStep

Category = Literal["data", "experience", "logic", "output", "debug"]

Prepare = Callable[[Config], NodeStep]
"""Makes the step of a node from its config. Raises `Unusable` if that cannot be used."""


class Form(NamedTuple):
    """The part of a palette in which an editor shows a type, and its settings, in a useful order."""

    category: Category
    settings: tuple[Setting, ...] = ()


class NodeType(NamedTuple):
    """A type of node. `needs`: what the author of a workflow must be allowed to do, for a node to do it."""

    prepare: Prepare
    form: Form
    needs: Needs = ()

    def step(self, config: Mapping[str, Any]) -> NodeStep:
        """The step of a node with this config, which only authors with the rights may take. Raises `Unusable`."""
        own = Config(config, self.form.settings)
        return guarded(self.needs, own, self.prepare(own))
