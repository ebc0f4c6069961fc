"""The settings that an editor offers for the types of nodes are those that their files read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from trunkline.actors.engine import nodes
from trunkline.actors.engine.node_settings import FORMS, Setting
from trunkline.actors.engine.nodes import NODE_TYPES
from trunkline.actors.engine.palette import node_types
from trunkline.actors.engine.tools import Unusable
from trunkline.actors.engine.unknown_settings import unknown_settings

MODULES = [import_module(f"{nodes.__name__}.{each.name}") for each in iter_modules(nodes.__path__)]
ENGINE = Path(nodes.__path__[0]).parent
MADE_OF_NOUNS = re.compile(r"(user|group)(JsonTemplate|PayloadPath)")
"""Names of fields that are put together where they are read."""


def settings_of(module: ModuleType) -> list[Setting]:
    types = getattr(module, "TYPES", None) or {module.TYPE: None}
    settings = [setting for type in types for setting in FORMS[type].settings]
    return [each for setting in settings for each in (setting, *setting.rows)]


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
    "devices": {"idTemplate"},
    "events": {"comment", "message"},
    "experience_groups": {"group"},
    "experience_users": {"tags", "user"},
    "get_device": {"devices"},
    "sendgrid": {"attachments"},
    "webhook_reply": {"cookieInfo"},
}
"""Fields of the rows of another list, another name of a field, fields that are refused, and words that are none."""


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
    for call in calls_of(module):
        if getattr(call.func, "id", "") != "choice_of" or not isinstance(call.args[1], ast.Constant):
            continue
        name = call.args[1].value
        accepted: Any = eval(compile(ast.Expression(call.args[2]), "options", "eval"), vars(module))
        same = [each.options for each in settings_of(module) if each.name == name]
        assert tuple(accepted) in same, name


def test_flags_are_on_that_are_true_unless_set() -> None:
    sources = "".join(each.read_text() for each in ENGINE.glob("nodes/*.py"))
    read = set(re.findall(r'\.get\("(\w+)"\) is (?:not )?False', sources))
    assert read == {each.name for form in FORMS.values() for each in form.settings if each.is_on}


# The rows of lists. A node is prepared with rows that note what is read of them.


class Row(dict[str, Any]):
    """A row of a list, and the fields that were read of it."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.read: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)

    __getitem__ = get


class Prepared(NamedTuple):
    """What a type made of a configuration: what was read of the row of a list, and the sentence of a refusal."""

    read: set[str]
    refusal: str


VALUES = {
    "expression": "1 > 0",
    "flag": True,
    "number": 1,
    "rows": [],
    "texts": ["data.a"],
    "flags": [],
    "json": [],
}
NOT_DESCRIBED = {("CustomNodeExecuteNode", "fields")}
"""The fields of a custom node are those that it declares itself."""
LISTS = [
    (type, setting)
    for type, form in FORMS.items()
    for setting in form.settings
    if setting.kind in ("rows", "texts", "json") and (type, setting.name) not in NOT_DESCRIBED
]


def value_of(setting: Setting) -> Any:
    return setting.options[0] if setting.kind == "choice" else VALUES.get(setting.kind, "data.a")


def choices_of(settings: tuple[Setting, ...]) -> Iterator[dict[str, str]]:
    """Each way to choose."""
    choices = [each for each in settings if each.kind == "choice"]
    for chosen in product(*(each.options for each in choices)):
        yield dict(zip([each.name for each in choices], chosen, strict=True))


def prepared(type: str, setting: Setting, given: Any) -> Iterator[Prepared]:
    """Prepare a node with a list, with what else it needs or with all that it may have, and each way to choose."""
    others = [each for each in FORMS[type].settings if each.name != setting.name]
    needed = {each.name: value_of(each) for each in others if each.is_needed} | NEEDED.get(type, {})
    for fields in (needed, {each.name: value_of(each) for each in others}):
        for chosen in choices_of(FORMS[type].settings):
            refusal = ""
            items = [Row(each) if isinstance(each, dict) else each for each in given]
            try:
                NODE_TYPES[type]({**fields, **chosen, setting.name: items})
            except Unusable as unusable:
                refusal = str(unusable)
            read = [each.read for each in items if isinstance(each, Row)]
            yield Prepared(set().union(*read), refusal)


NEEDED: dict[str, dict[str, Any]] = {
    "GaugeNode": {"attribute": ["a"]},
    "TimeSeriesNode": {"attribute": ["a"], "duration": 1},
}
"""What is not needed always, but here."""


@cache
def rows_of(setting: Setting) -> list[dict[str, Any]]:
    """A row with all its fields, for each way to choose."""
    full = {each.name: value_of(each) for each in setting.rows}
    return [full | chosen for chosen in choices_of(setting.rows)]


@pytest.mark.parametrize("type", FORMS)
def test_no_field_that_a_type_reads_is_told_to_be_unknown(type: str) -> None:
    """Also one that is read by a function that several types share."""
    settings, read = FORMS[type].settings, set[str]()
    needed = {each.name: value_of(each) for each in settings if each.is_needed} | NEEDED.get(type, {})
    for fields in (needed, {each.name: value_of(each) for each in settings}):
        for chosen in choices_of(settings):
            config = Row({**fields, **chosen})
            with suppress(Unusable):
                NODE_TYPES[type](config)
            read |= config.read
    known = dict.fromkeys(read - WITHOUT_EFFECT.get(type, set()) - {""}, "data.a")
    assert unknown_settings(type, known) == []


WITHOUT_EFFECT = {
    "CreateExperienceGroupNode": {"membersToRemove"},
    "GaugeNode": {"resolution"},
    "SendgridEmailNode": {"attachments"},
}
"""Fields that a type reads since another one shares its function, and a field that is refused."""


@pytest.mark.parametrize(("type", "setting"), LISTS, ids=lambda each: getattr(each, "name", each))
def test_the_fields_of_rows_are_those_that_are_read(type: str, setting: Setting) -> None:
    found = [each for row in rows_of(setting) for each in prepared(type, setting, [row])]
    assert set().union(*(each.read for each in found)) == {each.name for each in setting.rows}
    if setting.rows:
        assert "" in {each.refusal for each in found}


@pytest.mark.parametrize(("type", "setting"), LISTS, ids=lambda each: getattr(each, "name", each))
def test_the_choices_and_the_needed_fields_of_rows_are_those_of_the_node(type: str, setting: Setting) -> None:
    for field in setting.rows:
        refused = []
        for row in rows_of(setting):
            whole = [*prepared(type, setting, [row])]
            usable = [not each.refusal and bool(each.read) for each in whole]
            without = prepared(type, setting, [{name: row[name] for name in row if name != field.name}])
            refused += [each.refusal != "" for each, was in zip(without, usable, strict=True) if was]
            if field.kind == "choice" and any(not each.refusal and field.name in each.read for each in whole):
                odd = {each.refusal for each in prepared(type, setting, [{**row, field.name: "odd"}])}
                assert any(each.endswith(f"; give one of {', '.join(field.options)}.") for each in odd), odd
        assert field.is_needed == all(refused), field.name


@pytest.mark.parametrize(
    ("type", "setting"),
    [each for each in LISTS if each[1].kind == "texts"],
    ids=lambda each: getattr(each, "name", each),
)
def test_lists_of_texts_are_taken(type: str, setting: Setting) -> None:
    found = [*prepared(type, setting, ["data.a", "b"])]
    assert "" in {each.refusal for each in found}
    assert not any(f"config.{setting.name}: give" in each.refusal for each in found)


def test_the_days_are_those_of_a_week() -> None:
    (days,) = [each for each in FORMS["TimeRangeNode"].settings if each.kind == "flags"]
    prepare = NODE_TYPES["TimeRangeNode"]
    prepare({days.name: [True] * len(days.options)})
    for length in (len(days.options) - 1, len(days.options) + 1):
        with pytest.raises(Unusable, match=days.name):
            prepare({days.name: [True] * length})
