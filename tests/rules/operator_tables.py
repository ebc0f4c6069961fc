"""The tables of the operators' documentation: the command line, settings, limits, metrics.

Owns their contents; `doc_tables.py` says which document contains them.
"""

from __future__ import annotations

import ast
import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Any, Final

import trio
import typer

from tests.partitions import make_partitions
from tests.rules.markdown import anchor, code, codes, first_paragraph, table
from trunkline.actors import boot
from trunkline.actors.catalogue import JOB_KINDS
from trunkline.actors.core.values.structs import Message
from trunkline.http.cli.late import loaded
from trunkline.http.cli.main import app
from trunkline.http.metrics.exposition import families, up
from trunkline.http.processes.neighbours import Neighbours
from trunkline.http.serve import make_dispatcher
from trunkline.http.wire.connection_counts import ConnectionCounts
from trunkline.limits.settings import ENV_PREFIX, TABLES, Settings
from trunkline.limits.table import Limits, Rate

CHECKOUT: Final = Path(__file__).resolve().parents[2]
ROOMS: Final = ("actors", "bench", "http", "store")


# The command line.


def commands() -> str:
    """Every command with its arguments and options."""
    contents = "\n".join(f"- [`{title}`](#{anchor(title)})" for title in starmap(_usage, command_tree()))
    sections = (part for name, command in command_tree() for part in _command_section(name, command))
    return "\n\n".join([contents, *sections])


def command_tree() -> Iterator[tuple[str, Any]]:
    """Every command by its name, such as `trunkline user add`."""

    def inside(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
            return
        if command.invoke_without_command and name != "trunkline":
            yield name, command
        for word, each in inner.items():
            yield from inside(loaded(each), f"{name} {word}")

    return inside(typer.main.get_command(app), "trunkline")


def _command_section(name: str, command: Any) -> Iterator[str]:
    yield f"## `{_usage(name, command)}`"
    yield first_paragraph(command.help)
    if command.params:
        yield table(("Name", "Default", "Meaning"), (_param_row(each) for each in command.params))


def _usage(name: str, command: Any) -> str:
    arguments = (each for each in command.params if each.param_type_name == "argument")
    return " ".join([name, *map(_argument, arguments)])


def _argument(param: Any) -> str:
    name = param.metavar or param.name.upper()
    return name if param.required else f"[{name}]"


def _param_row(param: Any) -> Sequence[str]:
    is_argument = param.param_type_name == "argument"
    options = "/".join([*param.opts, *param.secondary_opts])
    name = _argument(param) if is_argument else " ".join([options, *_placeholder(param)])
    default = (
        "" if param.default in (None, "", False) else "on" if param.default is True else str(param.default)
    )
    meaning = param.help or ""
    if param.required:
        meaning = f"Required. {meaning}".strip()
    if param.envvar:
        meaning = f"{meaning} Variable: `{param.envvar}`."
    return code(name), code(default), meaning


def _placeholder(param: Any) -> list[str]:
    return [] if param.is_flag else [param.metavar or "VALUE"]


# Settings and limits.


def settings() -> str:
    """Every setting."""
    fields = [field for field in dataclasses.fields(Settings) if field.name not in TABLES]
    rows = (
        (
            code(field.name),
            code(ENV_PREFIX + field.name.upper()),
            code(_toml(field.default)),
            f"{field.metadata['description']} {_bounds(field.metadata)}".strip(),
        )
        for field in fields
    )
    return table(("Name", "Variable", "Default", "Meaning"), rows)


def _toml(value: object) -> str:
    if value is None:
        return ""
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else f"{value}"


def _bounds(metadata: Any) -> str:
    if "choices" in metadata:
        return f"One of {codes(metadata['choices'])}."
    if "minimum" in metadata and "maximum" in metadata:
        return f"{metadata['minimum']} to {metadata['maximum']}."
    if metadata.get("minimum"):
        return f"At least {metadata['minimum']}."
    return "Never shown." if metadata.get("secret") else ""


def unread_settings() -> set[str]:
    """Settings that no package reads."""
    return {field.name for field in dataclasses.fields(Settings)} - _attributes_read("settings")


def limits() -> str:
    """Every limit."""
    head = ("Name", "Value", "Unit", "Per", "Reason")
    return table(head, (_limit_row(field) for field in dataclasses.fields(Limits)))


def _limit_row(field: dataclasses.Field[Any]) -> Sequence[str]:
    value = field.default
    shown = f"{value.calls} in {value.window_s:g} s" if isinstance(value, Rate) else f"{value}"
    metadata = field.metadata
    return (
        code(field.name),
        shown,
        metadata["unit"],
        metadata["per"],
        metadata["reason"],
    )


def unread_limits() -> set[str]:
    """Limits that nobody reads outside of `limits/`, and that are no throttle of a message and no gate of a job."""
    throttles = {each.throttle for each in _messages(Message) if each.throttle is not None}
    gates = {kind.gate for kind in JOB_KINDS if kind.gate is not None}
    read = throttles | gates | _attributes_read("limits", "_limits", "_BOUNDS")
    return {field.name for field in dataclasses.fields(Limits)} - read


def _messages(base: type[Message]) -> Iterator[type[Message]]:
    for each in base.__subclasses__():
        yield each
        yield from _messages(each)


def _attributes_read(*of: str) -> set[str]:
    """Names of attributes that the packages read from objects with these names."""
    return {attribute for owner, attribute in _attributes() if owner in of}


@cache
def _attributes() -> set[tuple[str, str]]:
    """Every attribute in the packages, with the name of the object that it is read from."""
    return {
        (_name(node.value), node.attr)
        for room in ROOMS
        for file in sorted((CHECKOUT / room).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


# Metrics.


def metrics() -> str:
    """Every metric, by its name in a scrape."""
    rows = ((code(name), kind, help) for name, kind, help in metrics_of_a_server())
    return table(("Name", "Type", "Meaning"), rows)


def metrics_of_a_server() -> list[tuple[str, str, str]]:
    """Name, type and meaning of every metric of a server, those that it has with several partitions among them."""
    return trio.run(_metrics)


async def _metrics() -> list[tuple[str, str, str]]:
    with tempfile.TemporaryDirectory() as directory:
        chosen = Settings(data_dir=str(Path(directory) / "data"))
        make_partitions(Path(chosen.data_dir), 2)
        with boot.opened(chosen) as system:
            Neighbours(system)
            found = [*families(make_dispatcher(system, chosen), ConnectionCounts(), ""), up({})]
    return [
        (each.name + ("_total" if each.type == "counter" else ""), each.type, each.documentation)
        for each in found
    ]
