"""The settings that a type of node declares are those that it reads, and those that it needs are needed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any, NamedTuple

import pytest

from trunkline.actors.engine.nodes import NODE_TYPES
from trunkline.actors.engine.palette import node_types
from trunkline.actors.engine.settings import ChoiceSetting, Config, PathSetting, Setting, TemplateSetting
from trunkline.actors.engine.tools import Unusable, choice_of, path_of
from trunkline.actors.engine.unknown_settings import unknown_settings


def test_each_type_says_what_it_does_and_names_each_setting_once() -> None:
    shown = node_types()
    assert [each["type"] for each in shown] == sorted(NODE_TYPES)
    assert all(each["summary"] for each in shown)
    for type in NODE_TYPES.values():
        names = [each.name for each in type.form.settings]
        assert len(names) == len(set(names))


def test_only_what_is_declared_can_be_read() -> None:
    source, other = PathSetting("source"), PathSetting("source")
    config = Config({"source": "data.a"}, (source,))
    assert path_of(config, source) is not None
    with pytest.raises(AssertionError, match="source is read, and is not a setting of the type of the node"):
        path_of(config, other)


def test_a_choice_takes_its_options_only() -> None:
    method = ChoiceSetting("method", "a", "b")
    assert choice_of(Config({}, (method,)), method) == "a"
    assert choice_of(Config({"method": "b"}, (method,)), method) == "b"
    with pytest.raises(Unusable, match=r"config\.method: is 'c'; give one of a, b"):
        choice_of(Config({"method": "c"}, (method,)), method)


@pytest.mark.parametrize(
    ("type", "config", "problem"),
    [
        (
            "MathNode",
            {
                "statements": [
                    {"expression": "1", "resultPath": "a"},
                    {"expression": "1 +", "resultPath": "b"},
                ]
            },
            "config.statements[1].expression: Expression, position 4: ",
        ),
        (
            "MathNode",
            {"statements": [{"expression": "1", "resultPath": "a"}, {"expression": "1"}]},
            "config.statements[1].resultPath: is not set",
        ),
        ("MutateNode", {"rules": [{"type": "foo"}]}, "config.rules[0].type: is 'foo'; give one of set"),
        (
            "SwitchNode",
            {"switchTemplate": "a", "cases": [{"caseTemplate": []}]},
            "config.cases[0].caseTemplate: is",
        ),
        (
            "StringNode",
            {"method": "concat", "methodArgs": ["a", "{{"], "resultPath": "a"},
            "config.methodArgs[1]: ",
        ),
        (
            "HttpNode",
            {"uriTemplate": "u", "authType": "basic", "authCredentials": {"usernameTemplate": "{{"}},
            "config.authCredentials.usernameTemplate: ",
        ),
        (
            "StructureEmailNode",
            {"toAddresses": ["a", "{{"], "subjectTemplate": "s"},
            "config.toAddresses[1]: ",
        ),
        ("StructureEmailNode", {"toAddresses": "{{", "subjectTemplate": "s"}, "config.toAddresses: "),
    ],
)
def test_what_cannot_be_used_is_named_with_its_place_in_a_list(
    type: str, config: dict[str, Any], problem: str
) -> None:
    with pytest.raises(Unusable) as refused:
        NODE_TYPES[type].step(config)
    assert str(refused.value).startswith(problem)


def test_what_is_not_shown_is_neither_offered_nor_told_of() -> None:
    (device,) = [each for each in node_types() if each["type"] == "UpdateDeviceNode"]
    assert "idTemplate" not in {each["name"] for each in device["settings"]}
    assert unknown_settings("UpdateDeviceNode", {"idTemplate": "a"}) == []


# A node is prepared with configurations that note what is read of them.


class Given(dict[str, Any]):
    """The fields of a configuration or of a row, and the names of those that were read."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.read: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)


class Prepared(NamedTuple):
    """What a type made of a configuration: what it read of it and of the rows of a list, and its refusal."""

    read: set[str]
    read_of_rows: set[str]
    refusal: str


VALUES = {
    "expression": "1 > 0",
    "number": 1,
    "rows": [],
    "texts": ["data.a"],
    "flags": [],
    "json": [],
}
EXAMPLES = {"customNodeId": "0" * 24, "schema": "{}", "unit": "day"}
"""Values of settings that are not usable with any text."""


def value_of(setting: Setting) -> Any:
    if setting.kind == "choice":
        return setting.options[0]
    if setting.kind == "flag":
        return not setting.is_on
    return EXAMPLES.get(setting.name, VALUES.get(setting.kind, "data.a"))


def choices_of(settings: tuple[Setting, ...]) -> Iterator[dict[str, str]]:
    """Each way to choose."""
    choices = [each for each in settings if each.kind == "choice"]
    for chosen in product(*(each.options for each in choices)):
        yield dict(zip([each.name for each in choices], chosen, strict=True))


def shown(type: str) -> tuple[Setting, ...]:
    return tuple(each for each in NODE_TYPES[type].form.settings if each.is_shown)


def prepared(type: str, fields: dict[str, Any], rows_of: str = "") -> Prepared:
    """Prepare a node; `rows_of` names the list of whose rows it is noted what is read."""
    rows = [Given(each) if isinstance(each, dict) else each for each in fields.get(rows_of) or ()]
    config = Given({**fields, rows_of: rows} if rows_of else fields)
    refusal = ""
    try:
        NODE_TYPES[type].step(config)
    except Unusable as unusable:
        refusal = str(unusable)
    of_rows = (each.read for each in rows if isinstance(each, Given))
    return Prepared(config.read, set[str]().union(*of_rows), refusal)


def ways(type: str, *without: str) -> Iterator[dict[str, Any]]:
    """Configurations: what is needed and all that there is, with each way to choose, but for some settings."""
    settings = tuple(each for each in shown(type) if each.name not in without)
    least = {each.name: value_of(each) for each in settings if each.is_needed}
    for fields in (least, {each.name: value_of(each) for each in settings}):
        for chosen in choices_of(settings):
            yield {**fields, **chosen}


def ways_without(type: str) -> Iterator[dict[str, Any]]:
    """These, then those without each setting, then those without each two."""
    names = [each.name for each in shown(type)]
    for count in range(3):
        for without in combinations(names, count):
            yield from ways(type, *without)


@pytest.mark.parametrize("type", NODE_TYPES)
def test_each_setting_is_read(type: str) -> None:
    unread = {each.name for each in shown(type)}
    for fields in ways_without(type):
        if not unread:
            break
        unread -= prepared(type, fields).read
    assert unread == set()


@pytest.mark.parametrize("type", NODE_TYPES)
def test_what_is_needed_is_needed_and_nothing_else(type: str) -> None:
    needed = {each.name for each in shown(type)}
    for fields in ways_without(type):
        if needed <= {each.name for each in shown(type) if each.is_needed}:
            break
        if not prepared(type, fields).refusal:
            needed &= fields.keys()
    assert needed == {each.name for each in shown(type) if each.is_needed}
    for name in needed:
        assert all(prepared(type, fields).refusal for fields in ways(type, name)), name


# The rows of lists.

NOT_DESCRIBED = {("CustomNodeExecuteNode", "fields")}
"""The fields of a custom node are those that it declares itself."""
LISTS = [
    (type, setting)
    for type in NODE_TYPES
    for setting in shown(type)
    if setting.kind in ("rows", "texts", "json") and (type, setting.name) not in NOT_DESCRIBED
]


def with_list(type: str, setting: Setting, given: list[Any]) -> Iterator[Prepared]:
    """Prepare a node with a list, with what else it needs or with all that it may have, and each way to choose."""
    for fields in ways(type, setting.name):
        yield prepared(type, {**fields, setting.name: given}, setting.name)


def rows_of(setting: Setting) -> list[dict[str, Any]]:
    """A row with all its fields, for each way to choose."""
    full = {each.name: value_of(each) for each in setting.rows if each.is_shown}
    return [full | chosen for chosen in choices_of(setting.rows)]


@pytest.mark.parametrize(("type", "setting"), LISTS, ids=str)
def test_each_field_of_a_row_is_read(type: str, setting: Setting) -> None:
    found = [each for row in rows_of(setting) for each in with_list(type, setting, [row])]
    read = set[str]().union(*(each.read_of_rows for each in found))
    assert {each.name for each in setting.rows if each.is_shown} <= read
    if setting.rows:
        assert "" in {each.refusal for each in found}


@pytest.mark.parametrize(
    ("type", "setting"), [(type, setting) for type, setting in LISTS if setting.rows], ids=str
)
def test_the_needed_fields_of_rows_are_those_of_the_node(type: str, setting: Setting) -> None:
    for field in setting.rows:
        refused = []
        for row in rows_of(setting):
            whole = [*with_list(type, setting, [row])]
            usable = [not each.refusal and bool(each.read_of_rows) for each in whole]
            without = with_list(type, setting, [{name: row[name] for name in row if name != field.name}])
            refused += [each.refusal != "" for each, was in zip(without, usable, strict=True) if was]
        assert field.is_needed == all(refused), field.name


@pytest.mark.parametrize(
    ("type", "setting"), [(type, setting) for type, setting in LISTS if setting.kind == "texts"], ids=str
)
def test_lists_of_texts_are_taken(type: str, setting: Setting) -> None:
    found = [*with_list(type, setting, ["data.a", "b"])]
    assert "" in {each.refusal for each in found}
    assert not any(f"config.{setting}: give" in each.refusal for each in found)


def test_the_days_are_those_of_a_week() -> None:
    (days,) = [each for each in shown("TimeRangeNode") if each.kind == "flags"]
    prepared("TimeRangeNode", {days.name: [True] * len(days.options)})
    for length in (len(days.options) - 1, len(days.options) + 1):
        assert days.name in prepared("TimeRangeNode", {days.name: [True] * length}).refusal


def test_a_template_is_not_a_path() -> None:
    """What reads a setting says of which kind it is: the type checker refuses others."""
    template = TemplateSetting("name")
    config = Config({"name": "data.a"}, (template,))
    assert path_of(config, template) is not None  # type: ignore[arg-type]
