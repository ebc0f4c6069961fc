"""The types of nodes: one file for each, found by its name. A new type is a new file.

A file has `TYPE`, the name of the type in definitions, and `prepare`, which is called once for a node with its config
and returns the step that is run at each visit. `prepare` raises `Unusable` for a config that cannot be used. A file
with several types has `TYPES` instead, a map of names to such functions.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from trunkline.actors.engine.visit import Prepare


def _found() -> dict[str, Prepare]:
    found: dict[str, Prepare] = {}
    for module in iter_modules(__path__):
        node = import_module(f"{__name__}.{module.name}")
        types: dict[str, Prepare] = getattr(node, "TYPES", None) or {node.TYPE: node.prepare}
        assert found.keys().isdisjoint(types), f"two files have a type of {module.name}"
        found |= types
    return found


NODE_TYPES: Final = _found()
"""What prepares a node, by type."""
