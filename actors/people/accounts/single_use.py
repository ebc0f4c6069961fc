"""Values that may be used once: codes of a second factor, assertions of an identity provider.

Each value has a number that orders it in time (the step of a code, the expiry of an assertion). The used values are
kept with their numbers, at most so many; when one is forgotten, all values up to its number are refused from then on.
So no value is ever accepted twice, whatever the clock shows: no clock is read here.
"""

from __future__ import annotations

from trunkline.actors.core.records.kind import Doc


def use(doc: Doc, field: str, number: int, value: str | bytes, kept_max: int) -> bool:
    """Note in `doc[field]` that `value` is used. False, and nothing is changed, if it was used or is too old."""
    noted = doc.get(field) or {"floor": -1, "used": []}
    floor, used = noted["floor"], noted["used"]
    if number <= floor or any(each[1] == value for each in used):
        return False
    kept = sorted([*used, [number, value]])
    forgotten, kept = kept[:-kept_max], kept[-kept_max:]
    doc[field] = {"floor": max([floor, *(each[0] for each in forgotten)]), "used": kept}
    return True
