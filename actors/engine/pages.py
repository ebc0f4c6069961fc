"""Pages of records that nodes find: which page is asked for, and what of it is the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from trunkline.actors.engine.tools import Config, choice_of, shortened, text_reader
from trunkline.actors.engine.visit import Visit, refused
from trunkline.actors.formulas.values import to_number


def page_reader(config: Config, noun: str, sort_fields: tuple[str, ...]) -> Callable[[Visit], dict[str, Any]]:
    """Reads `resultsPerPage`, `resultsPage`, `sortField` and `sortDirection`, as a `Page` has them.

    Without `findMultiple` it is a page with one record.
    """
    is_list = config.get("findMultiple") is True
    size, number = _whole(config, "resultsPerPage", 100), _whole(config, "resultsPage", 0)
    order = {
        "sort_field": choice_of(config, "sortField", sort_fields),
        "sort_direction": choice_of(config, "sortDirection", ("asc", "desc")),
    }

    def read(visit: Visit) -> dict[str, Any]:
        per_page = size(visit) if is_list else 1
        if not 1 <= per_page <= 1000:
            raise refused(f"config.resultsPerPage: gives {per_page}; a page has 1 to 1000 {noun}.")
        page = number(visit) if is_list else 0
        if not 0 <= page <= 10_000_000:
            raise refused(f"config.resultsPage: gives {page}; the first page is 0, and 10000000 the last.")
        return {"page": page, "per_page": per_page, **order}

    return read


def picker(config: Config) -> Callable[[dict[str, Any]], Any]:
    """What of the answer of a list is the result.

    Its first record, None if there is none; with `findMultiple` its records, with `findMetadata` all of it.
    """
    is_list, has_metadata = config.get("findMultiple") is True, config.get("findMetadata") is True

    def pick(listed: dict[str, Any]) -> Any:
        items = listed["items"]
        if is_list:
            return listed if has_metadata else items
        return items[0] if items else None

    return pick


def _whole(config: Config, name: str, default: int) -> Callable[[Visit], int]:
    """Reads a field whose template gives a whole number; blank is the default."""
    read = text_reader(config, name)

    def whole(visit: Visit) -> int:
        text = read(visit).strip()
        number = to_number(text) if text else default
        if not math.isfinite(number) or number != int(number):
            raise refused(f"config.{name}: gives {shortened(text)}, not a whole number.")
        return int(number)

    return whole
