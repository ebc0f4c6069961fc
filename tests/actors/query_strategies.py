"""Documents and queries for Hypothesis: every operator, kind of field and form of tag, nulls, mixed types.

The alphabets are small, so that documents and queries meet often. The strategies of `World` are made from
texts and numbers of one's choice: what compares answers with a database keeps to those that both understand.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from trunkline.actors.core.query.compile import Field

Json = Any
Doc = dict[str, Any]

FIELDS = {
    "v": Field("value"),
    "w": Field("value"),
    "list": Field("values"),
    "id": Field("id"),
    "ids": Field("ids"),
    "ref": Field("value", "id"),
    "at": Field("time"),
    "tags": Field("tags"),
}

HEX_IDS = ["0a" * 12, "0b" * 12, "0c" * 12]
MOMENTS_MS = [2, 86_400_000, 1_714_521_600_000]

hex_ids = st.sampled_from(HEX_IDS)
tag_texts = st.sampled_from(["a", "b", "c"])
tag_lists = st.lists(st.fixed_dictionaries({"key": tag_texts, "value": tag_texts}), max_size=3)


def iso_of(time_ms: int) -> str:
    """The ISO text of a moment, made without the code that is tested."""
    return (
        datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def moment_forms(time_ms: int) -> st.SearchStrategy[Json]:
    """The forms in which a query may give a moment."""
    return st.sampled_from([time_ms, float(time_ms), iso_of(time_ms), {"$date": iso_of(time_ms)}])


id_operands = st.one_of(hex_ids, hex_ids.map(str.upper))
time_operands = st.sampled_from(MOMENTS_MS).flatmap(moment_forms)


def one_operator(operands: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A condition of one operator that takes any operand."""
    lists = st.lists(operands, max_size=3)
    single = dict.fromkeys(("$eq", "$ne", "$gt", "$lt", "$gte", "$lte"), st.one_of(operands, st.none()))
    operators = {**single, "$in": lists, "$nin": lists}
    return st.one_of([st.fixed_dictionaries({name: operand}) for name, operand in operators.items()])


sides = st.one_of(
    tag_texts,
    st.none(),
    st.lists(tag_texts, max_size=2).map(lambda items: {"$in": items}),
    st.lists(tag_texts, max_size=2).map(lambda items: {"$nin": items}),
)
tag_pairs = st.fixed_dictionaries({}, optional={"$tagKey": sides, "$tagValue": sides}).filter(bool)
tag_forms = st.one_of(st.none(), tag_pairs, st.dictionaries(tag_texts, sides, min_size=1, max_size=2))
tag_conditions = st.one_of(
    tag_forms,
    tag_forms.map(lambda form: {"$eq": form}),
    tag_forms.map(lambda form: {"$ne": form}),
)


class World:
    """The strategies over some texts and numbers: `scalars`, `documents` and `queries`."""

    def __init__(self, texts: st.SearchStrategy[str], numbers: st.SearchStrategy[float]) -> None:
        self.texts = texts
        self.scalars = st.one_of(texts, numbers, st.booleans())
        self.documents = st.fixed_dictionaries(
            {},
            optional={
                "v": st.one_of(self.scalars, st.none()),
                "w": st.one_of(self.scalars, st.none()),
                "list": st.lists(self.scalars, max_size=3),
                "id": st.one_of(hex_ids, st.none()),
                "ids": st.lists(hex_ids, max_size=3),
                "ref": st.one_of(hex_ids, st.none()),
                "at": st.one_of(st.sampled_from(MOMENTS_MS), st.none()),
                "tags": tag_lists,
            },
        )
        self.queries = st.recursive(
            st.lists(self._fields(), min_size=1, max_size=2).map(dict), _joined, max_leaves=6
        )

    def _fields(self) -> st.SearchStrategy[tuple[str, Json]]:
        ordinary = self._ordinary(self.scalars)
        return st.one_of(
            st.tuples(st.sampled_from(["v", "w", "list"]), st.one_of(self.scalars, st.none(), ordinary)),
            st.tuples(
                st.sampled_from(["id", "ids"]), st.one_of(id_operands, st.none(), one_operator(id_operands))
            ),
            st.tuples(st.just("ref"), st.one_of(id_operands, st.none(), self._ordinary(id_operands))),
            st.tuples(st.just("at"), st.one_of(time_operands, st.none(), one_operator(time_operands))),
            st.tuples(st.just("at"), self._text_operator(st.sampled_from(["1970-01", "0Z", "00:00"]))),
            st.tuples(st.just("tags"), tag_conditions),
        )

    def _ordinary(self, operands: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
        """Few operators at once: of many, hardly a document meets all, and a wrong one would not show."""
        one = st.one_of(one_operator(operands), self._text_operator(self.texts))
        case = st.sampled_from([{}, {"$ci": True}, {"$ci": False}])
        return st.one_of(
            st.tuples(one, case).map(lambda parts: {**parts[0], **parts[1]}),
            st.tuples(one, one, case).map(lambda parts: {**parts[0], **parts[1], **parts[2]}),
        )

    @staticmethod
    def _text_operator(texts: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
        names = st.sampled_from(["$startsWith", "$endsWith", "$contains"])
        return st.tuples(names, texts.filter(bool)).map(lambda pair: dict([pair]))


def _joined(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    parts = st.lists(inner, min_size=1, max_size=3)
    return st.dictionaries(st.sampled_from(["$and", "$or", "$nor"]), parts, min_size=1, max_size=2)


PLAIN = World(st.text("aAbB.", max_size=3), st.sampled_from([-2, -1.5, 0, 1, 2, 2.0, 2.5, 3, 7, 2**53 + 1]))
"""Texts of ASCII, whose case every engine folds in the same way."""
