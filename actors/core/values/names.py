"""Names in messages: lists of them, and which one a caller meant who used a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from trunkline.actors.core.values.errors import Invalid

_SYNONYMS: Final = tuple(
    frozenset(group.split())
    for group in (
        "limit perpage pagesize size count max top",
        "page offset skip pagenumber",
        "sort sortfield sortcolumn sortby orderby",
        "sort order sortdirection direction sortorder",
        "query where filter search q",
        "start from since begin after starttime startdate",
        "end to until before endtime enddate",
        "time timestamp ts date",
        "level severity",
        "subject title",
        "name command",
        "email user username login mail",
        "datatype type",
        "deviceclass class type",
        "payload params parameters arguments args",
        "status connected connectionstatus",
        "keepaliveinterval keepalive interval heartbeat",
    )
)
"""Names that other interfaces use for the same thing, in lower case and without separators."""


def check_addressable(version: str) -> None:
    """Raise `Invalid` for the name of a version that no path can have in place of an id."""
    if "/" in version:
        raise Invalid(
            f"version: {version!r} has a slash, so no path could name it; give a name without slashes."
        )


def did_you_mean(name: object, names: Iterable[str], *, cutoff: float = 0.6) -> str:
    """A clause that suggests the names that somebody may have meant, or nothing."""
    similar = similar_names(str(name), names, cutoff=cutoff)
    return f" (did you mean {either(similar)}?)" if similar else ""


def either(names: Sequence[str]) -> str:
    """Names as a choice: `a`, `a or b`, `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def similar_names(name: str, names: Iterable[str], *, cutoff: float = 0.6) -> list[str]:
    """The names that somebody may have meant by `name`, best first: the same but for its form, a synonym, a near miss.

    Empty if there are none.
    """
    known = list(names)
    plain = _plain(name[:60])
    if same := [each for each in known if _plain(each) == plain]:
        return same
    groups = [group for group in _SYNONYMS if plain in group]
    if synonyms := [each for each in known if any(_plain(each) in group for group in groups)]:
        return synonyms
    return get_close_matches(name[:60], known, n=1, cutoff=cutoff)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(" ", "").lower()


def listed(names: Iterable[str]) -> str:
    """Return names for a message; only some if they are many or long, as the columns of a table may be."""
    known = list(names)
    shown_names: list[str] = []
    chars = 0
    for name in known[:30]:
        chars += len(name)
        if chars > 300 and shown_names:
            break
        shown_names.append(name)
    left = len(known) - len(shown_names)
    return ", ".join(shown_names) + (f" and {left} more" if left else "")
