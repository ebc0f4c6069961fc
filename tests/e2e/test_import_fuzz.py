"""Bundles that were changed at random: imported, or refused with a sentence; never a fault."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from random import Random
from typing import Any

import pytest

from tests.e2e.conftest import Server
from tests.e2e.test_bundles import ALL, export
from tests.e2e.test_imports import send
from tests.e2e.whole_application import whole_application

ROUNDS = 60
STRANGE: list[Any] = [
    None,
    True,
    -1,
    10**30,
    1.5,
    "",
    "x" * 5000,
    "0" * 24,
    "\u0000",
    [],
    {},
    [[[]]],
    {"a": None},
]


def places(value: Any) -> list[tuple[Any, Any]]:
    """All containers within a value, each with one of its keys."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            found.append((value, key))
            found += places(value[key])
    return found


def changed(entries: dict[str, list[Any]], random: Random) -> dict[str, list[Any]]:
    """The lines with one to three changes."""
    entries = copy.deepcopy(entries)
    for _ in range(random.randint(1, 3)):
        lines = entries[random.choice(sorted(name for name in entries if entries[name]))]
        kind = random.random()
        if kind < 0.1:
            lines.append(copy.deepcopy(random.choice(lines)))
        elif kind < 0.2:
            random.shuffle(lines)
        else:
            holder, key = random.choice(places(lines))
            others = [holder[key] for holder, key in places(lines)]
            if kind < 0.4 and isinstance(holder, dict):
                del holder[key]
            else:
                holder[key] = copy.deepcopy(random.choice(STRANGE if kind < 0.8 else others))
    return entries


@pytest.mark.slow
async def test_a_changed_bundle_is_imported_or_refused_with_a_sentence(server: Server) -> None:
    whole = await whole_application(server)
    bundle = await export(server, whole.path, **ALL)
    plain = {name: bundle.archive.read(name) for name in bundle.names}
    entries = {
        name: [json.loads(line) for line in raw.splitlines()]
        for name, raw in plain.items()
        if name.endswith(".jsonl")
    }
    entries["manifest.json"] = [json.loads(plain["manifest.json"])]
    random, seen = Random(12), set()
    for number in range(ROUNDS):
        file = io.BytesIO()
        mutant = changed(entries, random)
        with zipfile.ZipFile(file, "w") as archive:
            for name, raw in plain.items():
                lines = mutant.get(name)
                archive.writestr(name, raw if lines is None else "\n".join(map(json.dumps, lines)))
        before = (await server.call("GET", "/applications"))["totalCount"]
        response = await send(server, "/applications", file.getvalue())
        assert response.status_code in (201, 400, 413, 422), (number, response.text)
        made = int(response.status_code == 201)
        if not made:
            problems = response.json().get("validationErrors", [response.json()])
            assert problems
            assert all(each["message"].endswith(".") and len(each["message"]) > 10 for each in problems), (
                problems
            )
        assert (await server.call("GET", "/applications"))["totalCount"] == before + made
        seen.add(response.status_code)
    assert seen >= {201, 422}
