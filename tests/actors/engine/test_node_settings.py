"""The settings that an editor offers for the types of nodes are those that their files read."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import pytest

from trunkline.actors.engine import nodes
from trunkline.actors.engine.node_settings import FORMS, Setting
from trunkline.actors.engine.nodes import NODE_TYPES
from trunkline.actors.engine.palette import node_types

MODULES = [import_module(f"{nodes.__name__}.{each.name}") for each in iter_modules(nodes.__path__)]
ENGINE = Path(nodes.__path__[0]).parent
MADE_OF_NOUNS = re.compile(r"(user|group)(JsonTemplate|PayloadPath)")
"""Names of fields that are put together where they are read."""


def settings_of(module: ModuleType) -> list[Setting]:
    types = getattr(module, "TYPES", None) or {module.TYPE: None}
    return [setting for type in types for setting in FORMS[type].settings]


def calls_of(module: ModuleType) -> list[ast.Call]:
    """The calls that read a field of the configuration of a node."""
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text())
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    return [each for each in calls if each.args and isinstance(each.args[0], ast.Name | ast.Constant)]


def texts_of(calls: list[ast.Call]) -> set[str]:
    """The names of fields that calls read: `config.get("a")` and `reader(config, "a")`."""
    found = set()
    for call in calls:
        function = call.func
        on = (
            function.value if isinstance(function, ast.Attribute) and function.attr == "get" else call.args[0]
        )
        given = call.args if on is not call.args[0] else call.args[1:]
        if isinstance(on, ast.Name) and on.id == "config":
            found |= {each.value for each in given[:2] if isinstance(each, ast.Constant) and each.value}
    return {each for each in found if isinstance(each, str) and re.fullmatch(r"[a-z]\w+", each)}


def test_every_type_has_a_form() -> None:
    assert FORMS.keys() == NODE_TYPES.keys()
    assert all(each["summary"] for each in node_types())


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_field_that_a_file_reads_is_offered(module: ModuleType) -> None:
    read = texts_of(calls_of(module)) - NO_SETTINGS.get(module.__name__.rpartition(".")[2], set())
    assert read - {each.name for each in settings_of(module)} == set()


NO_SETTINGS = {
    "array": {"type", "inputTemplate", "indexTemplate", "outputPath", "order"},
    "object": {"type", "inputTemplate", "outputPath"},
    "devices": {"idTemplate"},
    "events": {"comment", "message"},
    "experience_groups": {"group"},
    "experience_users": {"user"},
    "get_device": {"devices"},
    "webhook_reply": {"cookieInfo"},
}
"""Fields of the rows of lists, an older name of a field, a field that is refused, and words that are no fields."""


@pytest.mark.parametrize("type", FORMS)
def test_every_setting_is_read_somewhere(type: str) -> None:
    sources = [*ENGINE.glob("*.py"), *ENGINE.glob("nodes/*.py")]
    read = "".join(each.read_text() for each in sources if each.name != "node_settings.py")
    names = [each.name for each in FORMS[type].settings]
    assert len(names) == len(set(names))
    for name in names:
        if MADE_OF_NOUNS.fullmatch(name):
            continue
        stem = name.removesuffix("Template").removesuffix("Type")
        assert f'"{name}"' in read or f'"{stem}"' in read or f'"{stem}Template"' in read, name


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_options_of_a_choice_are_those_that_are_accepted(module: ModuleType) -> None:
    offered = {each.name: each for each in settings_of(module) if each.kind == "choice"}
    for call in calls_of(module):
        if getattr(call.func, "id", "") != "choice_of" or not isinstance(call.args[1], ast.Constant):
            continue
        name = call.args[1].value
        if name not in offered:
            assert name in {"type", "order", "valueTemplateType"}, name
            continue
        accepted: Any = eval(compile(ast.Expression(call.args[2]), "options", "eval"), vars(module))
        same = [each.options for each in settings_of(module) if each.name == name]
        assert tuple(accepted) in same, name
