"""The types of nodes as an editor offers them."""

from __future__ import annotations

from functools import cache
from inspect import cleandoc

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.engine.nodes import NODE_TEXTS, NODE_TYPES
from trunkline.actors.engine.settings import Setting


@cache
def node_types() -> list[Doc]:
    """Each type that runs here, by name, with what its file says about it."""
    return [_node_type(type) for type in sorted(NODE_TYPES)]


def _node_type(type: str) -> Doc:
    form = NODE_TYPES[type].form
    first, _, rest = cleandoc(NODE_TEXTS[type]).partition("\n\n")
    summary = " ".join(first.partition(": ")[2].split())
    return {
        "type": type,
        "category": form.category,
        "summary": summary[:1].upper() + summary[1:],
        "description": "\n\n".join(" ".join(part.split()) for part in rest.split("\n\n")),
        "settings": _settings(form.settings),
    }


def _settings(settings: tuple[Setting, ...]) -> list[Doc]:
    return [_setting(each) for each in settings if each.is_shown]


def _setting(setting: Setting) -> Doc:
    shown: Doc = {"name": setting.name, "kind": setting.kind, "required": setting.is_needed}
    options = {"options": list(setting.options)} if setting.options else {}
    rows = {"rows": _settings(setting.rows)} if setting.rows else {}
    default = {"default": setting.is_on} if setting.kind == "flag" else {}
    return {**shown, **options, **rows, **default}
