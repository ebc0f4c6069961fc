"""The worst bodies of each operation within the bounds, made from the API document and its examples.

Nothing here knows an operation: a body is the example of the document with one part blown up to the largest that its
schema and `body_bytes_max` allow, for each part, however deep. So an operation that is added later is covered too.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import partial
from operator import mul
from typing import Any, NamedTuple

from tests.e2e.worst_queries import is_advanced, resolved, worst_conditions

Json = Any

SPARE_BYTES = 4096
"""What the rest of a body may need."""
DEPTH_MAX = 3
"""So deep parts of a body are blown up."""
NESTED = 400
"""Lists within each other: deeper ones are refused before anything looks at them."""


class Worst(NamedTuple):
    """A body: which part of it is blown up and how, and its bytes."""

    label: str
    body: bytes


def worst_bodies(
    api: Json, schema: Json, example: Json, bytes_max: int, wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[Worst]:
    """Those of an operation whose labels are wanted."""
    budget = bytes_max - SPARE_BYTES
    maker = _Maker(api, budget)
    for path, part in maker.parts(schema, example, ()):
        for how, made in maker.blown(part, _at(example, path)):
            label = f"{'.'.join(map(str, path)) or 'body'} as {how}"
            if not wanted(label):
                continue
            body = json.dumps(_with(example, path, made()), separators=(",", ":")).encode()
            if len(body) <= bytes_max:
                yield Worst(label, body)
    for how, made in (("[0, ...]", partial(mul, [0], budget // 2)), ("keys", partial(_keys, budget))):
        if wanted(f"body as {how}"):
            yield Worst(f"body as {how}", json.dumps(made(), separators=(",", ":")).encode())
    if isinstance(example, dict) and wanted("an unknown field"):
        more = {**example, "notKnown": [[]] * (budget // 3)}
        yield Worst("an unknown field", json.dumps(more, separators=(",", ":")).encode())


class _Maker:
    def __init__(self, api: Json, budget: int) -> None:
        self._api = api
        self._budget = budget
        self._seen: set[str] = set()

    def variants(self, schema: Json) -> list[Json]:
        """The schemas that a value may have, without references."""
        if "$ref" in schema:
            more = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**resolved(self._api, schema), **more}
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            return [each for choice in choices for each in self.variants(choice)]
        return [schema]

    def parts(
        self, schema: Json, example: Json, path: tuple[str | int, ...]
    ) -> Iterator[tuple[tuple[str | int, ...], Json]]:
        """The parts of a body, each with where it is and one of its schemas."""
        for variant in self.variants(schema):
            text = repr((len(path) > 1 or path, variant))
            if text in self._seen:  # a schema within itself, or at another place
                continue
            self._seen.add(text)
            yield path, variant
            if len(path) >= DEPTH_MAX or is_advanced(variant):
                continue
            for name, of in variant.get("properties", {}).items():
                inner = example.get(name) if isinstance(example, dict) else None
                yield from self.parts(of, inner, (*path, name))
            if "items" in variant and isinstance(example, list) and example:
                yield from self.parts(variant["items"], example[0], (*path, 0))

    def blown(self, schema: Json, example: Json) -> Iterator[tuple[str, Callable[[], Json]]]:
        """The worst values of a schema, each with what makes it: most of them are large, and few are wanted."""
        if is_advanced(schema):
            for how, value in worst_conditions(self._api, schema, self._budget):
                yield how, partial(copy.copy, value)
            yield "keys", partial(_keys, self._budget)
            return
        kind = schema.get("type")
        if (
            schema.get("maxLength", self._budget) < 1000
            or "enum" in schema
            or "const" in schema
            or kind in ("number", "integer", "boolean", "null")
        ):
            return
        if kind == "string" or kind is None:
            most = min(schema.get("maxLength", self._budget), self._budget)
            texts = ("a", "{{a.b.c}}", "(", "ä", "[", "<a>") if most > 10_000 else ("{{a.b.c}}",)
            yield from ((f"{most} of {text!r}", partial(_repeated, text, most)) for text in texts)
        if kind == "array":
            yield from self._arrays(schema, example)
        if kind == "object":
            yield from self._objects(schema)
        if kind is None or isinstance(kind, list):
            yield "[0, ...]", partial(mul, [0], self._budget // 2)
            yield "[{}, ...]", partial(mul, [{"a": 1}], self._budget // 8)
            yield "keys", partial(_keys, self._budget)
            yield "nested", _nested

    def _arrays(self, schema: Json, example: Json) -> Iterator[tuple[str, Callable[[], Json]]]:
        items = schema.get("items") or {}
        most = schema.get("maxItems", self._budget)
        for variant in self.variants(items) or [{}]:
            seeds = [self.sample(variant)]
            if isinstance(example, list) and example:
                seeds.append(example[0])
            for seed in seeds:
                size = len(json.dumps(_numbered(seed, 100_000))) + 1
                count = min(most, self._budget // size)
                yield f"{count} items", partial(_all_numbered, seed, count)
        if most > 1000:
            empty: Json = [] if items.get("type") == "array" else {}
            yield "empty items", partial(mul, [empty], min(most, self._budget // 3))

    def _objects(self, schema: Json) -> Iterator[tuple[str, Callable[[], Json]]]:
        more = schema.get("additionalProperties", not schema.get("properties"))
        if more is False:
            return
        of = more if isinstance(more, dict) else {}
        for variant in self.variants(of) or [{}]:
            value = self.sample(variant)
            size = len(json.dumps(value)) + 12
            count = min(schema.get("maxProperties", self._budget), self._budget // size)
            yield f"{count} keys", partial(dict.fromkeys, (f"k{number}" for number in range(count)), value)
            if not variant.get("type") or variant.get("type") == "string":
                most = min(variant.get("maxLength", self._budget), self._budget - 100)
                yield "a long value", partial(dict, k="{{a.b}}" * (most // 7))
        if not of:
            yield "nested", partial(dict, k=_nested())

    def sample(self, schema: Json) -> Json:
        """A small value of a schema."""
        schema = self.variants(schema)[0]
        for name in ("const", "default"):
            if name in schema and schema[name] is not None:
                return schema[name]
        if schema.get("enum"):
            return schema["enum"][0]
        if schema.get("examples"):
            return schema["examples"][0]
        kind = schema.get("type")
        if kind == "object":
            needed = schema.get("required", ())
            return {
                name: self.sample(schema["properties"][name])
                for name in needed
                if name in schema.get("properties", {})
            }
        if kind == "array":
            return [self.sample(schema.get("items") or {})] * schema.get("minItems", 0)
        if kind in ("integer", "number"):
            return schema.get("minimum", 1)
        if kind == "boolean":
            return True
        pattern = schema.get("pattern", "")
        if "24" in pattern:
            return "6920c0de0000000000000001"
        return "a" * max(1, schema.get("minLength", 1))


def _repeated(text: str, length: int) -> str:
    return (text * (length // len(text) + 1))[:length]


def _all_numbered(seed: Json, count: int) -> list[Json]:
    return [_numbered(seed, number) for number in range(count)]


def _numbered(seed: Json, number: int) -> Json:
    """A copy whose names differ from those of others."""
    if isinstance(seed, str):
        return seed if len(seed) == 24 else f"{seed[:8]}{number}"
    if not isinstance(seed, dict):
        return seed
    named = {
        name: f"n{number}"
        for name in ("name", "key", "id", "slug", "path")
        if isinstance(seed.get(name), str)
    }
    return {**seed, **named}


def _keys(budget: int) -> dict[str, int]:
    return {f"k{number}": 0 for number in range(budget // 11)}


def _nested() -> Json:
    value: Json = []
    for _ in range(NESTED):
        value = [value]
    return value


def _at(body: Json, path: tuple[str | int, ...]) -> Json:
    for name in path:
        try:
            body = body[name]
        except (KeyError, IndexError, TypeError):
            return None
    return body


def _with(body: Json, path: tuple[str | int, ...], value: Json) -> Json:
    """A copy of a body in which one part is another."""
    if not path:
        return value
    name, rest = path[0], path[1:]
    if isinstance(name, int):
        return [_with(body[0] if isinstance(body, list) and body else {}, rest, value)]
    outer = dict(body) if isinstance(body, dict) else {}
    outer[name] = _with(copy.copy(outer.get(name)), rest, value)
    return outer
