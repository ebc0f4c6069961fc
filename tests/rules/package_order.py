"""The order of the packages of a room, the lowest first: a package imports those before it, none behind it.

`test_packages.py` holds it, and docs/architecture.md shows it with what each package says of itself. A wing is a folder
of packages; its own name stands behind them for the files that are directly in it, which may import all of them. Files
at the top of a room come last, except those that are named here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ORDER: Final = {
    "actors": (
        "core.values",
        "core.formulas",
        "core.query",
        "core.runtime",
        "core.records",
        "core.contents",
        "core.outgoing",
        "core.scripts",
        "core",
        "people.accounts",
        "people.organizations",
        "people.audit",
        "people",
        "platform.jobs",
        "platform.applications",
        "platform",
        "workflows.flows",
        "workflows.triggers",
        "workflows",
        "fleet.devices.record",
        "fleet.devices.state",
        "fleet.devices.commands",
        "fleet.devices.queries",
        "fleet.alarms",
        "fleet.devices.bulk",
        "fleet.devices.actor",
        "fleet.deployments",
        "fleet.recipes",
        "fleet",
        "access",
        "data.tables",
        "data.events",
        "data.topics",
        "data.files",
        "data",
        "connections.credentials",
        "connections.integrations",
        "connections.webhooks",
        "connections",
        "presentation.overview",
        "presentation.experience",
        "presentation.dashboards",
        "presentation.notebooks",
        "presentation",
        "engine",
        "portability.bundles",
        "portability.archives",
        "portability.templates",
        "portability",
        "catalogue",
        "moving",
        "maintenance",
    ),
    "http": (
        "wire",
        "hosting",
        "calls",
        "streams",
        "link",
        "mqtt",
        "experiences",
        "processes",
        "openapi",
        "site",
        "metrics",
        "resources.platform",
        "resources.workflows",
        "resources.people",
        "resources.access",
        "resources.fleet",
        "resources.data",
        "resources.connections",
        "resources.presentation",
        "resources.portability",
    ),
}
"""By room. `catalogue` is a file at the top: it has what all packages add, and maintenance walks over it."""

ABOVE_ALL: Final = {"http": ("cli",)}
"""Packages above the files at the top of their room: the command line starts the server."""

ONE_WITH: Final = {"actors.engine.nodes": "actors.engine"}
"""Packages that stand together with the one around them: the engine finds the nodes, and a node is written for it."""

AT_THE_TOP: Final = {
    "actors": "`catalogue` (every kind, actor, job and resource), `readers`, `boot`, `moving` (an application leaves "
    "a system that runs, or comes to one), `server_users` (the first user, and what commands do with users), `profile` "
    "(reads of the current user), `acting_later` (the table of what acts in whose name), `server_bounds` (the table of "
    "what all tenants share)",
    "http": "`app` and `serve` put the server together, `serve_standby` waits before; `routes` is the whole table; "
    "`systemd` tells the service manager",
}
"""What the files at the top of a room are."""


def place(module: str) -> tuple[str, str]:
    """The room of a module, and the longest name in the order that it has or stands under; '' if there is none."""
    room, *rest = module.split(".")
    for size in range(len(rest), 0, -1):
        name = ".".join(rest[:size])
        if name in ORDER[room] or name in ABOVE_ALL.get(room, ()):
            return room, name
    return room, ""


def rank(module: str) -> int:
    """How high a module stands in its room."""
    room, name = place(module)
    if name in ABOVE_ALL.get(room, ()):
        return len(ORDER[room]) + 1
    return ORDER[room].index(name) if name else len(ORDER[room])


def described(checkout: Path) -> Iterator[tuple[str, str]]:
    """Each folder with what it holds, in the order: wings, then their packages, then the files at the top of a room."""
    for room, packages in ORDER.items():
        shown: set[str] = set()
        for package in (*packages, *ABOVE_ALL.get(room, ())):
            parts = package.split(".")
            for size in range(1, len(parts) + 1):
                folder = Path(room, *parts[:size])
                if str(folder) not in shown and (checkout / folder / "__init__.py").is_file():
                    shown.add(str(folder))
                    yield f"{folder.as_posix()}/", _said(checkout / folder / "__init__.py")
        yield f"{room}/*.py", AT_THE_TOP[room]


def _said(file: Path) -> str:
    """The first paragraph of a package's docstring."""
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(said.partition("\n\n")[0].split())
