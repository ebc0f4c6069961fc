"""The types of nodes: one file for each, found by its name. A new type is a new file.

A file has `TYPE`, the name of the type in definitions; `FORM`, its category and its settings; `NEEDS`, what the author
of a workflow must be allowed to do, unless nothing; and `prepare`, which is called once for a node with its config and
returns the step that is run at each visit. `prepare` reads the config by the settings of the form, and raises
`Unusable` for a config that cannot be used. A file with several types has `TYPES` instead, a map of names to them.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from trunkline.actors.engine.node_type import NodeType

NODE_TYPES: Final[dict[str, NodeType]] = {}
"""The types, by name."""

NODE_TEXTS: Final[dict[str, str]] = {}
"""What the file of a type says about it, by type."""

for _module in iter_modules(__path__):
    _node = import_module(f"{__name__}.{_module.name}")
    _types: dict[str, NodeType] = getattr(_node, "TYPES", None) or {
        _node.TYPE: NodeType(_node.prepare, _node.FORM, getattr(_node, "NEEDS", ()))
    }
    assert NODE_TYPES.keys().isdisjoint(_types), f"two files have a type of {_module.name}"
    NODE_TYPES.update(_types)
    NODE_TEXTS.update(dict.fromkeys(_types, _node.__doc__ or ""))
