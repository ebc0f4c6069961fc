"""Pages of records that nodes find: which page is asked for, and what of it is the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from trunkline.actors.core.formulas.values import to_number
from trunkline.actors.engine.settings import ChoiceSetting, Config, FlagSetting, Setting, TemplateSetting
from trunkline.actors.engine.tools import choice_of, is_on, shortened, text_reader
from trunkline.actors.engine.visit import Visit, refused

FIND_MULTIPLE: Final = FlagSetting("findMultiple")
FIND_METADATA: Final = FlagSetting("findMetadata")
SORT_DIRECTION: Final = ChoiceSetting("sortDirection", "asc", "desc")
PAGE: Final = TemplateSetting("resultsPage")
PER_PAGE: Final = TemplateSetting("resultsPerPage")


def page_settings(sort_field: ChoiceSetting) -> tuple[Setting, ...]:
    """The settings of a node that finds a page of records, which may be sorted by some fields."""
    return (FIND_MULTIPLE, FIND_METADATA, sort_field, SORT_DIRECTION, PAGE, PER_PAGE)


class Asked(NamedTuple):
    """A page that is asked for, as a `Page` has it, and what picks the result from the answer of the list."""

    page: dict[str, Any]
    pick: Callable[[dict[str, Any]], Any]


def page_reader(config: Config, noun: str, sort_field: ChoiceSetting) -> Callable[[Visit], Asked]:
    """Reads `resultsPerPage`, `resultsPage`, `sortField` and `sortDirection`.

    The result is the first record, None if there is none; with `findMultiple` the records of the page, with
    `findMetadata` the whole answer. A page of 0 records is for the count of all.
    """
    is_list, has_metadata = is_on(config, FIND_MULTIPLE), is_on(config, FIND_METADATA)
    size, number = _whole(config, PER_PAGE, 100), _whole(config, PAGE, 0)
    order = {
        "sort_field": choice_of(config, sort_field),
        "sort_direction": choice_of(config, SORT_DIRECTION),
    }

    def read(visit: Visit) -> Asked:
        if not is_list:
            return Asked(
                {"page": 0, "per_page": 1, **order}, lambda listed: next(iter(listed["items"]), None)
            )
        per_page, page = size(visit), number(visit)
        if not 0 <= per_page <= 1000:
            raise refused(f"config.resultsPerPage: gives {per_page}; a page has up to 1000 {noun}.")
        if not 0 <= page <= 10_000_000:
            raise refused(f"config.resultsPage: gives {page}; the first page is 0, and 10000000 the last.")

        def pick(listed: dict[str, Any]) -> Any:
            if not per_page:
                listed = {**listed, "items": [], "count": 0, "perPage": 0}
            return listed if has_metadata else listed["items"]

        return Asked({"page": page, "per_page": per_page or 1, **order}, pick)

    return read


def _whole(config: Config, setting: TemplateSetting, default: int) -> Callable[[Visit], int]:
    """Reads a field whose template gives a whole number; blank is the default."""
    read = text_reader(config, setting)

    def whole(visit: Visit) -> int:
        text = read(visit).strip()
        number = to_number(text) if text else default
        if not math.isfinite(number) or number != int(number):
            raise refused(f"config.{setting}: gives {shortened(text)}, not a whole number.")
        return int(number)

    return whole
