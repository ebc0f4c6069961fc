"""The allowed directions of imports between the top-level packages ("rooms").

`limits` and `store` import no other room, `actors` imports both, `http` imports `actors` and `limits`, and `bench`
imports none and uses the server over the network, like any client. Only the command line may import `bench`, to add
its commands and to run its demo. The rules read the syntax trees, so an import inside a function or under
TYPE_CHECKING counts as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

MAY_IMPORT = {
    "limits": {"limits"},
    "store": {"store"},
    "actors": {"actors", "limits", "store"},
    "http": {"http", "actors", "limits"},
    "bench": {"bench"},
}
MAY_ALSO_IMPORT = {
    PurePosixPath("http/cli/main.py"): {"bench"},
    PurePosixPath("http/cli/demo.py"): {"bench"},
}

# Libraries that only one room may import: no other room knows how records are stored.
OWNED_BY_STORE = {"lmdb", "cbor2"}

WIRES = {
    PurePosixPath("bench/link_frames.py"),
    PurePosixPath("bench/link_queue.py"),
}
"""What speaks CBOR to a server. In the server all use it through `store/codec.py`, which tells of its panics."""

# The rooms below `http` do not know the HTTP server.
EDGE_ONLY = {
    "hypercorn",
    "quart",
    "quart_trio",
    "trio_websocket",
    "wsproto",
    "h11",
    "h2",
    "httptools",
    "hyperframe",
}

CLIENTS = {PurePosixPath("actors/connections/integrations/websocket.py"): "trio_websocket"}
"""What connects to others knows the library of the client."""

# `limits` does no I/O, waits for nothing and reads no clock: `now` is passed in.
NOT_IN_LIMITS = {
    "asyncio",
    "datetime",
    "io",
    "multiprocessing",
    "os",
    "pathlib",
    "selectors",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "trio",
}
CALLS_NOT_IN_LIMITS = {"open", "print", "input"}

# By these names a room would be imported past its package, from the checkout's top level. `http` is not
# among them: there it is the standard library's.
ROOMS_AT_THE_TOP = {"actors", "bench", "limits", "store"}


def imported_modules(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything imported; `from a import b` gives `a.b`, as b may be a module."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                prefix = "." * level + (module or "")
                yield from ((node.lineno, f"{prefix}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def import_problem(file: PurePosixPath, name: str) -> str | None:
    """Why this file of a room may not import that name; None if it may."""
    room = file.parts[0]
    top, *rest = name.split(".")
    if top == "":
        return "imports are absolute: from trunkline.<room> import ..."
    if name.endswith(".*"):
        return "no wildcard imports"
    if top in ROOMS_AT_THE_TOP:
        return f"the room is imported as trunkline.{top}"
    if top == "trunkline" and (
        not rest or rest[0] not in MAY_IMPORT[room] | MAY_ALSO_IMPORT.get(file, set())
    ):
        return f"{room} imports only {', '.join(sorted(MAY_IMPORT[room]))}"
    if top in OWNED_BY_STORE and room != "store" and not (top == "cbor2" and file in WIRES):
        return f"only store knows {top}"
    if top in EDGE_ONLY and room not in {"http", "bench"} and CLIENTS.get(file) != top:
        return f"{room} knows no HTTP"
    if top in NOT_IN_LIMITS and room == "limits":
        return "limits does no I/O and reads no clock"
    return None


def problems_of(file: PurePosixPath, source: str) -> list[str]:
    """All problems of the imports of one file of a room, one sentence each."""
    tree = ast.parse(source)
    found = [
        f"{file}:{line}: {name}: {problem}"
        for line, name in imported_modules(tree)
        if (problem := import_problem(file, name))
    ]
    if file.parts[0] == "limits":
        found += [
            f"{file}:{node.lineno}: {node.func.id}(): limits does no I/O"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in CALLS_NOT_IN_LIMITS
        ]
    return found


def test_rooms_import_only_what_they_may(checkout: Path, python_files: list[PurePosixPath]) -> None:
    problems = [
        problem
        for file in python_files
        if file.parts[0] in MAY_IMPORT
        for problem in problems_of(file, (checkout / file).read_text(encoding="utf-8"))
    ]
    assert not problems, "\n".join(problems)


def test_the_rules_cover_every_room(rooms: tuple[str, ...]) -> None:
    assert set(MAY_IMPORT) == set(rooms)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("actors/fleet/devices/actor/actor.py", "from trunkline.http import errors"),
        ("actors/fleet/devices/actor/actor.py", "import quart"),
        ("actors/fleet/devices/actor/actor.py", "import cbor2"),
        ("actors/fleet/devices/actor/actor.py", "from .errors import NotFound"),
        ("actors/fleet/devices/actor/actor.py", "from trunkline.store.keys import *"),
        ("actors/fleet/devices/actor/actor.py", "from store import keys"),
        ("actors/fleet/devices/actor/actor.py", "import trunkline"),
        ("bench/load.py", "from trunkline.limits.table import Limits"),
        ("bench/load.py", "import cbor2"),
        ("http/link/session.py", "import lmdb"),
        ("http/link/frames.py", "import cbor2"),
        ("http/app.py", "from trunkline import store"),
        ("http/app.py", "import trunkline.store.env as env"),
        ("http/app.py", "import lmdb"),
        ("http/app.py", "from trunkline.bench import cli"),
        ("http/app.py", "def late():\n    from trunkline.store.env import Store"),
        ("http/app.py", "import importlib\nimportlib.import_module('trunkline.store.env')"),
        ("http/cli/main.py", "from trunkline.store import backup"),
        ("limits/window.py", "import trio"),
        ("limits/window.py", "from time import monotonic"),
        ("limits/settings.py", "import os.path"),
        ("limits/settings.py", "text = open('trunkline.toml').read()"),
        ("limits/settings.py", "from trunkline.store import errors"),
        ("store/env.py", "from trunkline.limits.table import Limits"),
    ],
)
def test_a_wrong_import_is_found(file: str, source: str) -> None:
    assert len(problems_of(PurePosixPath(file), source)) == 1


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (
            "actors/fleet/devices/actor/actor.py",
            "from trunkline.limits.table import Limits\nfrom trunkline.store import keys",
        ),
        ("actors/webhook.py", "import httpx"),
        ("bench/load.py", "import time\nfrom trunkline.bench.client import Client"),
        ("http/app.py", "import http.client\nfrom http import HTTPStatus\nimport quart"),
        ("http/app.py", "from trunkline.actors import errors\nfrom trunkline.limits.table import Limits"),
        ("http/cli/main.py", "from trunkline.bench import cli"),
        ("limits/window.py", "from __future__ import annotations\nfrom collections import deque"),
        ("store/env.py", "import lmdb\nimport cbor2\nimport trio\nfrom trunkline.store import keys"),
    ],
)
def test_a_right_import_passes(file: str, source: str) -> None:
    assert problems_of(PurePosixPath(file), source) == []
