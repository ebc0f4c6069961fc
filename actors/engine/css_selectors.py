"""CSS selectors on a document: which of its elements a selector matches.

Each part of a selector is judged for all elements at once, by their order in the document, so the work is at most the
number of elements times the length of the selector, whatever the selector is.

A prefix of a name is a part of the name: `soap|Body` and `soap\\:Body` are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from cssselect import SelectorSyntaxError
from cssselect import parser as css

from trunkline.actors.core.runtime.computing import give_up_if_cancelled
from trunkline.actors.engine.markup import Document, Element

SELECTOR_CHARS_MAX: Final = 1_000

Matches = list[bool]
"""Of each element of a document, whether it is matched."""


class Unserved(Exception):
    """A selector has a part that is not served. The sentence names it."""


def select(document: Document, selector: str) -> list[Element]:
    """The elements that a selector matches, in the order of the document; none for text that is no selector.

    Raises `Unserved`.
    """
    if len(selector) > SELECTOR_CHARS_MAX:
        raise Unserved(f"has {len(selector)} characters; give at most {SELECTOR_CHARS_MAX}")
    try:
        parsed = css.parse(selector)
        pseudo = next((each.pseudo_element for each in parsed if each.pseudo_element is not None), None)
        if pseudo is not None:
            raise Unserved(f"has ::{getattr(pseudo, 'name', pseudo)}, which is not an element of a document")
        matches = _Selection(document).any_of(each.parsed_tree for each in parsed)
    except SelectorSyntaxError:
        return []
    except RecursionError:
        raise Unserved("nests too deep") from None
    return [element for element, is_matched in zip(document.elements, matches, strict=True) if is_matched]


class _Selection:
    """Judges the parts of a selector for one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._elements = document.elements

    def any_of(self, trees: Iterable[Any]) -> Matches:
        matches = [False] * len(self._elements)
        for tree in trees:
            matches = [one or other for one, other in zip(matches, self.of(tree), strict=True)]
        return matches

    def of(self, tree: Any) -> Matches:
        """The matches of a part of a selector, with all that it restricts."""
        # The parts stand from the right to the left, each within the one after it.
        parts = []
        while not isinstance(tree, css.Element):
            parts.append(tree)
            tree = tree.selector
        matches = self._all(self._name_test(tree))
        for part in reversed(parts):
            give_up_if_cancelled()
            if isinstance(part, css.CombinedSelector):
                related = self._after(part.combinator, matches)
                own = self.of(part.subselector)
            else:
                related, own = matches, self._own(part)
            matches = [one and other for one, other in zip(related, own, strict=True)]
        return matches

    def _all(self, test: Callable[[Element], bool]) -> Matches:
        return [test(element) for element in self._elements]

    def _name_test(self, part: css.Element) -> Callable[[Element], bool]:
        if part.element is None:
            return lambda _element: True
        name = self._name(part.namespace, part.element)
        return lambda element: element.name == name

    def _name(self, prefix: str | None, name: str) -> str:
        name = name if prefix in (None, "*") else f"{prefix}:{name}"
        return name.lower() if self._document.is_html else name

    def _own(self, part: Any) -> Matches:
        """The matches of one simple part, such as a class."""
        if isinstance(part, css.Class):
            wanted = part.class_name
            return self._all(lambda element: wanted in element.attributes.get("class", "").split())
        if isinstance(part, css.Hash):
            return self._all(lambda element: element.attributes.get("id") == part.id)
        if isinstance(part, css.Attrib):
            return self._all(self._attribute_test(part))
        if isinstance(part, css.Negation):
            return [not each for each in self.of(part.subselector)]
        if isinstance(part, css.Matching | css.SpecificityAdjustment):
            return self.any_of(part.selector_list)
        if isinstance(part, css.Relation):
            return self._having(part)
        if isinstance(part, css.Function):
            return self._series(part)
        return self._pseudo(part)

    def _attribute_test(self, part: css.Attrib) -> Callable[[Element], bool]:
        name, operator = self._name(part.namespace, part.attrib), part.operator
        folded = part.flag == "i"
        wanted = "" if part.value is None else str(part.value.value)
        wanted = wanted.lower() if folded else wanted

        def test(element: Element) -> bool:
            value = element.attributes.get(name)
            if value is None:
                return operator == "!="
            return operator == "exists" or _compares(operator, value.lower() if folded else value, wanted)

        return test

    def _after(self, combinator: str, left: Matches) -> Matches:
        """Which elements are related by a combinator to one of `left`."""
        matches = [False] * len(left)
        is_far, by_parent = combinator in " ~", combinator in " >"
        for at, element in enumerate(self._elements):
            other = element.parent if by_parent else element.before
            matches[at] = other >= 0 and (left[other] or (is_far and matches[other]))
        return matches

    def _before(self, combinator: str, right: Matches) -> Matches:
        """Which elements have one of `right` related to them by a combinator."""
        matches = [False] * len(right)
        is_far, by_parent = combinator in " ~", combinator in " >"
        for at in range(len(right) - 1, -1, -1):
            element = self._elements[at]
            other = element.parent if by_parent else element.before
            if other >= 0 and (right[at] or (is_far and matches[at])):
                matches[other] = True
        return matches

    def _having(self, part: css.Relation) -> Matches:
        matches = [False] * len(self._elements)
        for combinator, selector in part.arguments:
            tree = selector.parsed_tree
            wanted: Matches | None = None
            while isinstance(tree, css.CombinedSelector):
                own = self.of(tree.subselector)
                found = own if wanted is None else [a and b for a, b in zip(own, wanted, strict=True)]
                wanted = self._before(tree.combinator, found)
                tree = tree.selector
            own = self.of(tree)
            found = own if wanted is None else [a and b for a, b in zip(own, wanted, strict=True)]
            matches = [
                a or b for a, b in zip(matches, self._before(str(combinator.value), found), strict=True)
            ]
        return matches

    def _series(self, part: css.Function) -> Matches:
        if part.name not in ("nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type"):
            raise Unserved(f"has :{part.name}(), which is not served")
        try:
            step, first = css.parse_series(part.arguments)
        except ValueError:
            return [False] * len(self._elements)
        places = self._places(of_type=part.name.endswith("type"), from_end="last" in part.name)
        if step == 0:
            return [place == first for place in places]
        return [(place - first) % step == 0 and (place - first) // step >= 0 for place in places]

    def _places(self, *, of_type: bool, from_end: bool) -> list[int]:
        """The place of each element among its siblings, the first is 1."""
        counts: dict[tuple[int, str], int] = {}
        places = [0] * len(self._elements)
        for at in range(len(places))[:: -1 if from_end else 1]:
            element = self._elements[at]
            group = (element.parent, element.name if of_type else "")
            places[at] = counts[group] = counts.get(group, 0) + 1
        return places

    def _pseudo(self, part: css.Pseudo) -> Matches:
        match part.ident:
            case "root" | "scope":
                return self._all(lambda element: element.parent < 0)
            case "empty":
                return self._all(_is_empty)
            case "checked":
                return self._all(
                    lambda element: not element.attributes.keys().isdisjoint(("checked", "selected"))
                )
            case (
                "first-child"
                | "last-child"
                | "only-child"
                | "first-of-type"
                | "last-of-type"
                | "only-of-type"
            ):
                kind, of_type = part.ident.partition("-")[0], part.ident.endswith("type")
                ends = {"first": (False,), "last": (True,), "only": (False, True)}[kind]
                counted = [self._places(of_type=of_type, from_end=from_end) for from_end in ends]
                return [set(places) == {1} for places in zip(*counted, strict=True)]
        raise Unserved(f"has :{part.ident}, which is not served")


def _compares(operator: str, value: str, wanted: str) -> bool:
    match operator:
        case "=":
            return value == wanted
        case "!=":
            return value != wanted
        case "~=":
            return wanted in value.split()
        case "|=":
            return value == wanted or value.startswith(f"{wanted}-")
        case "^=":
            return wanted != "" and value.startswith(wanted)
        case "$=":
            return wanted != "" and value.endswith(wanted)
    return wanted != "" and wanted in value


def _is_empty(element: Element) -> bool:
    return all(isinstance(each, dict) and each["type"] not in ("text", "cdata") for each in element.children)
