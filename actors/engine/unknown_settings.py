"""Fields of nodes that are no settings of their types: a misspelt one, or one of a newer editor. The node runs without.

What is blank is not told of, since editors write what is not set as well. Nothing is refused: a workflow that was made
elsewhere runs as far as it can, and its `problems` and the records of its runs say what was ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from trunkline.actors.core.formulas.price import spend
from trunkline.actors.core.values.names import similar_names
from trunkline.actors.engine.nodes import NODE_TYPES
from trunkline.actors.engine.settings import Setting

SIMILAR_STEPS: Final = 100
"""What it costs to look for the setting that was meant."""
TOLD_MAX: Final = 10
"""Settings of one node that are told of."""
_ROWS_MAX: Final = 100
_BLANK: Final[tuple[Any, ...]] = (None, "", False, [], {})


def unknown_settings(type: str, config: dict[str, Any]) -> list[str]:
    """A sentence for each of the first settings that nodes of a type do not have."""
    known = NODE_TYPES.get(type)
    if known is None or type == "AnnotationNode":
        return []
    return list(islice(_unknown(type, known.form.settings, config, "config"), TOLD_MAX))


def _unknown(type: str, settings: tuple[Setting, ...], given: dict[str, Any], at: str) -> Iterator[str]:
    known = {setting.name: setting for setting in settings}
    for name, value in given.items():
        setting = known.get(name)
        if setting is not None:
            if setting.rows and isinstance(value, list):
                yield from _in_rows(type, setting, value, at)
        elif value not in _BLANK:
            spend(SIMILAR_STEPS)
            meant = similar_names(name, sorted(each for each in known if known[each].is_shown))
            advice = f" (did you mean {meant[0]}?)" if meant else ""
            yield f"{at}.{name[:100]}: is not a setting of {type}, so it is ignored{advice}."


def _in_rows(type: str, setting: Setting, rows: list[Any], at: str) -> Iterator[str]:
    for position, row in enumerate(rows[:_ROWS_MAX]):
        if isinstance(row, dict):
            yield from _unknown(type, setting.rows, row, f"{at}.{setting.name}[{position}]")
