"""Ids have the form of their kind, and a repeated run makes the same ones."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import NAMESPACE_DNS, UUID, uuid3, uuid5

import pytest

from tests.actors.engine.flow_cases import NOW_MS, failure, flow, node, run_dry, run_node

DNS = str(NAMESPACE_DNS)


async def made(config: dict[str, Any], data: Any = None, **body: Any) -> str:
    shown = await run_node("GenerateIdNode", {**config, "destinationPath": "data.id"}, data, **body)
    return str(shown["data"]["id"])


@pytest.mark.parametrize(
    ("config", "form"),
    [
        ({}, r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
        (
            {"idTypeTemplate": " UUIDv4 "},
            r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        ),
        (
            {"idTypeTemplate": "uuidv1"},
            r"[0-9a-f]{8}-[0-9a-f]{4}-1[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        ),
        ({"idTypeTemplate": "objectId"}, f"{NOW_MS // 1000:08x}[0-9a-f]{{16}}"),
        ({"idTypeTemplate": "nanoid"}, r"[A-Za-z0-9_-]{21}"),
        ({"idTypeTemplate": "{{data.kind}}", "numCharactersTemplate": "{{data.n}}"}, r"[A-Za-z0-9_-]{256}"),
    ],
)
async def test_forms(config: dict[str, Any], form: str) -> None:
    assert re.fullmatch(form, await made(config, {"kind": "nanoid", "n": 256}))


async def test_an_id_of_the_time_tells_the_time_of_the_run() -> None:
    ticks = UUID(await made({"idTypeTemplate": "uuidv1"})).time
    at = datetime(1582, 10, 15, tzinfo=UTC) + timedelta(microseconds=ticks // 10)
    assert int(at.timestamp() * 1000) == NOW_MS


async def test_hashed_ids_are_those_of_the_value_in_the_namespace() -> None:
    config = {"namespaceTemplate": "{{data.in}}", "valueTemplate": "{{data.name}}"}
    data = {"in": DNS, "name": "a&b.example"}
    for kind, expected in (("uuidv3", uuid3), ("uuidv5", uuid5)):
        assert await made({**config, "idTypeTemplate": kind}, data) == str(
            expected(NAMESPACE_DNS, "a&b.example")
        )


async def test_a_repeated_run_makes_the_same_ids_which_differ_within_a_run() -> None:
    kinds = ["uuidv1", "uuidv4", "objectId", "nanoid"]
    nodes = [
        node(
            f"{kind}{turn}",
            "GenerateIdNode",
            {"idTypeTemplate": kind, "destinationPath": f"data.{kind}{turn}"},
        )
        for kind in kinds
        for turn in range(2)
    ]
    for one, following in pairwise(nodes):
        one["outputIds"] = [[following["id"]]]
    runs = [(await run_dry(flow(*nodes)))["steps"][-1]["payload"]["data"] for _ in range(2)]
    assert runs[0] == runs[1]
    assert len(set(runs[0].values())) == 8


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"idTypeTemplate": "ulid"},
            "config.idTypeTemplate: gives 'ulid'; give one of uuidv1, uuidv3, uuidv4,",
        ),
        (
            {"idTypeTemplate": "uuidv5", "valueTemplate": "x"},
            "config.namespaceTemplate: gives '', not a UUID.",
        ),
        (
            {"idTypeTemplate": "uuidv3", "namespaceTemplate": DNS},
            "config.valueTemplate: gives nothing; a UUID",
        ),
        (
            {"idTypeTemplate": "nanoid", "numCharactersTemplate": 257},
            "config.numCharactersTemplate: gives 257;",
        ),
        (
            {"idTypeTemplate": "nanoid", "numCharactersTemplate": 0},
            "config.numCharactersTemplate: gives 0; an id",
        ),
        ({"destinationPath": ""}, "config.destinationPath: is not set"),
    ],
)
async def test_what_does_not_fit_is_refused(config: dict[str, Any], message: str) -> None:
    name, told = await failure("GenerateIdNode", {"destinationPath": "data.id", **config})
    assert name == "ValidationError"
    assert told.startswith(message)
