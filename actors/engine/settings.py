"""The settings of types of nodes: what the fields of a `config` are called, what is in them, and how they are offered.

Owns the declarations. The file of a node declares each of its settings once, and reads it by naming the declaration
(`tools.py`): a `Config` answers to nothing else, so what is read is what is declared. Editors, the sentences about
unknown fields and the tests with worst inputs walk over the same declarations. Does not own what a field means.

Objects, and lists that may also be something else, are not described; an editor shows them as JSON.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, ClassVar, Final, Literal

Kind = Literal[
    "text", "template", "longTemplate", "expression", "path", "number", "flag", "choice", "rows", "texts",
    "flags", "json",
]  # fmt: skip


class Setting:
    """A field of the configuration of a node, or of each row of a list.

    A node without a setting that `is_needed` cannot run. One that is not shown is read, but no editor offers it:
    another name of a field, what an export has beside, or what is refused.
    """

    kind: ClassVar[Kind]
    options: tuple[str, ...] = ()
    rows: tuple[Setting, ...] = ()
    is_on = False

    def __init__(self, name: str, *, is_needed: bool = False, is_shown: bool = True) -> None:
        self.name = name
        self.is_needed = is_needed
        self.is_shown = is_shown

    def __str__(self) -> str:
        return self.name


class TextSetting(Setting):
    """A text, taken as it is."""

    kind: ClassVar[Kind] = "text"


class TemplateSetting(Setting):
    """A template that gives a text, or a value."""

    kind: ClassVar[Kind] = "template"


class LongTemplateSetting(TemplateSetting):
    """A template of several lines."""

    kind: ClassVar[Kind] = "longTemplate"


class NumberSetting(TemplateSetting):
    """A template that gives a number."""

    kind: ClassVar[Kind] = "number"


class MixedSetting(TemplateSetting):
    """A template, or, as another setting says, a payload path, an expression, or a template that gives a number."""


class LongMixedSetting(MixedSetting):
    """The same of several lines."""

    kind: ClassVar[Kind] = "longTemplate"


class ExpressionSetting(Setting):
    """An expression."""

    kind: ClassVar[Kind] = "expression"


class PathSetting(Setting):
    """A path that leads into the payload."""

    kind: ClassVar[Kind] = "path"


class FlagSetting(Setting):
    """A boolean. One that `is_on` is true unless it is set to false, others are false unless they are set to true."""

    kind: ClassVar[Kind] = "flag"

    def __init__(self, name: str, *, is_on: bool = False, is_shown: bool = True) -> None:
        super().__init__(name, is_shown=is_shown)
        self.is_on = is_on


class ChoiceSetting(Setting):
    """One of some words. The first one is the default, unless one is needed."""

    kind: ClassVar[Kind] = "choice"

    def __init__(self, name: str, *options: str, is_needed: bool = False) -> None:
        super().__init__(name, is_needed=is_needed)
        self.options = options


class RowsSetting(Setting):
    """A list of objects, each with these settings."""

    kind: ClassVar[Kind] = "rows"

    def __init__(self, name: str, *rows: Setting, is_shown: bool = True) -> None:
        super().__init__(name, is_shown=is_shown)
        self.rows = rows


class TextsSetting(Setting):
    """A list of texts or templates."""

    kind: ClassVar[Kind] = "texts"


class FlagsSetting(Setting):
    """A list with a boolean for each option, by default true."""

    kind: ClassVar[Kind] = "flags"

    def __init__(self, name: str, *options: str) -> None:
        super().__init__(name)
        self.options = options


class JsonSetting(MixedSetting):
    """A list or an object, or the text of a mixed setting."""

    kind: ClassVar[Kind] = "json"


class Config:
    """The configuration of a node, or a row of one of its lists, which only its settings read."""

    __slots__ = ("_at", "_declared", "_given")

    def __init__(self, given: Mapping[str, Any], declared: tuple[Setting, ...], at: str = "config") -> None:
        self._given = given
        self._declared = declared
        self._at = at

    def place(self, setting: Setting, position: int | None = None) -> str:
        """Where a field is, or an item of its list, for sentences: such as config.statements[0].expression."""
        return f"{self._at}.{setting}" + ("" if position is None else f"[{position}]")

    def __getitem__(self, setting: Setting) -> Any:
        """The field as it is; None if it is not set."""
        assert setting in self._declared, f"{setting} is read, and is not a setting of the type of the node."
        return self._given.get(setting.name)

    def is_null(self, setting: Setting) -> bool:
        """Whether the field is set to null, which is not the same as left out."""
        return self[setting] is None and setting.name in self._given

    def others(self, known: Container[str]) -> list[str]:
        """The names of all fields that are not blank, but for these."""
        return [name for name, value in self._given.items() if value and name not in known]


# Those that many types have.

RESULT: Final = PathSetting("resultPath")
NEEDED_RESULT: Final = PathSetting("resultPath", is_needed=True)
DATA_METHOD: Final = ChoiceSetting("dataMethod", "individualFields", "jsonTemplate", "payloadPath")
KEY: Final = TemplateSetting("keyTemplate")
NEEDED_KEY: Final = TemplateSetting("keyTemplate", is_needed=True)
VALUE: Final = TemplateSetting("valueTemplate")
TAG: Final = (TemplateSetting("key"), TemplateSetting("value"))
"""How devices are chosen by tags."""
ERROR_BEHAVIOR: Final = ChoiceSetting("errorBehavior", "throw", "payloadPath")
ERROR_PATH: Final = PathSetting("errorPath")
