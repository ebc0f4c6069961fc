"""Topics and filters of topics, as MQTT has them: levels divided by `/`, `+` for one level, `#` for all that follow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.terms import RESERVED_TOPICS

_CONTROL: Final = re.compile("[\x01-\x1f\x7f-\x9f]")
TOPIC_CHARS_MAX: Final = 230
"""The API's limit."""


def check_topic(topic: str, field: str) -> None:
    """Raise `Invalid` unless messages can be published to the topic."""
    _check_reserved(topic, field)
    _check_text(topic, field)
    if len(topic) > TOPIC_CHARS_MAX:
        raise Invalid(f"{field}: has {len(topic)} characters; a topic has at most {TOPIC_CHARS_MAX}.")
    if "+" in topic or "#" in topic:
        raise Invalid(f"{field}: has + or #, which are for filters; a message is published to one topic.")


def check_filter(filter: str, field: str) -> None:
    """Raise `Invalid` unless the filter can select topics of an application."""
    _check_reserved(filter, field)
    check_form(filter, field)


def check_form(filter: str, field: str) -> None:
    """Raise `Invalid` unless the filter is one of MQTT, of whatever broker."""
    _check_text(filter, field)
    levels = filter.split("/")
    if any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        raise Invalid(f"{field}: + and # stand for whole levels, as in a/+/b or a/#.")
    if "#" in levels[:-1]:
        raise Invalid(f"{field}: # stands for all levels that follow, so it must be the last one, as in a/#.")


def matches(filter: str, topic: str) -> bool:
    """Whether the filter selects the topic. Wildcards at its beginning select no topic that begins with `$`."""
    if "+" not in filter and "#" not in filter:
        return filter == topic
    if topic.startswith("$") and filter[0] in "+#":
        return False
    wanted, levels = filter.split("/"), topic.split("/")
    if wanted[-1] == "#":
        wanted.pop()
        levels = levels[: len(wanted)]
    return len(wanted) == len(levels) and all(
        want in ("+", level) for want, level in zip(wanted, levels, strict=True)
    )


def covers(allowed: str, wanted: str) -> bool:
    """Whether every topic that the filter `wanted` selects is selected by `allowed` too."""
    ours, theirs = allowed.split("/"), wanted.split("/")
    for at, own in enumerate(ours):
        if own == "#":
            return True
        if at == len(theirs):
            return False
        other = theirs[at]
        if other == "#" or (own not in ("+", other)):
            return False
    return len(ours) == len(theirs)


def overlap(one: str, other: str) -> bool:
    """Whether there is a topic that both filters select."""
    ours, theirs = one.split("/"), other.split("/")
    for at in range(max(len(ours), len(theirs)) + 1):
        mine = ours[at] if at < len(ours) else None
        its = theirs[at] if at < len(theirs) else None
        if mine == "#" or its == "#":
            return True
        if mine is None or its is None:
            return mine is its
        if mine != its and "+" not in (mine, its):
            return False
    return True


def _check_reserved(text: str, field: str) -> None:
    for prefix in RESERVED_TOPICS:
        if text.startswith(prefix):
            raise Invalid(
                f"{field}: begins with {prefix}, which is reserved for the system; choose another beginning."
            )


def _check_text(text: str, field: str) -> None:
    if not text:
        raise Invalid(f"{field}: is empty; give a topic such as barn/door.")
    if "\x00" in text:
        raise Invalid(f"{field}: has the character U+0000, which no topic may have.")
    if _CONTROL.search(text) is not None:
        raise Invalid(f"{field}: has a control character, for which clients may end their connections.")


def may_publish(filter_type: str, listed: Sequence[str], topic: str) -> bool:
    """Whether a key whose topics are meant so allows to publish to a topic of the application."""
    if filter_type in ("all", "none"):
        return filter_type == "all"
    return any(matches(each, topic) for each in listed) is (filter_type == "whitelist")


def may_subscribe(filter_type: str, listed: Sequence[str], filter: str) -> bool:
    """Whether a key whose topics are meant so allows a subscription: all topics that the filter selects are allowed."""
    if filter_type in ("all", "none"):
        return filter_type == "all"
    if filter_type == "whitelist":
        return any(covers(each, filter) for each in listed)
    return not any(overlap(each, filter) for each in listed)
