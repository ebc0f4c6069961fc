"""Files of cases: what dry runs of workflows in files must show. Needs no server and no data directory.

A file `NAME.test.json` names the file of a workflow, as it is exported or sent to the API, and lists cases. A case
has the fields of a dry run and what is expected of it: the ids of the nodes in the order of their visits, values of
the last payload by their paths, or the name of the error. What is not expected is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.formulas.errors import FormulaError
from trunkline.actors.core.formulas.paths import compile_path
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.invalid_input import invalid
from trunkline.actors.core.values.structs import Body
from trunkline.actors.engine.dry_run import FlowTest, dry_run, new_run
from trunkline.actors.workflows.flows.definition import PARTS
from trunkline.limits.table import Limits

PATTERN: Final = "*.test.json"
DEFAULT_TIME_MS: Final = 1_767_225_600_000
"""The time of a case that names none: the first moment of 2026, so that a case has the same result every day."""


class Expected(Body, frozen=True):
    """What a run must show."""

    nodes: list[str] | UnsetType = UNSET
    payload: dict[str, Any] = msgspec.field(default_factory=dict)
    error: str | UnsetType | None = None


class Case(FlowTest, frozen=True, kw_only=True):
    """A dry run, and what it must show."""

    name: Annotated[str, Meta(min_length=1, max_length=255)]
    expect: Expected = msgspec.field(default_factory=Expected)


class CaseFile(Body, frozen=True):
    """The cases of a workflow; `flow` is a path relative to the file."""

    flow: Annotated[str, Meta(min_length=1)]
    cases: list[Case]


class Outcome(NamedTuple):
    """What became of a case: None, or a sentence for the first thing that is not as expected."""

    file: Path
    case: str
    problem: str | None


def case_files(directory: Path) -> list[Path]:
    """The files of cases in a directory and below it. Raises `Invalid` if there are none."""
    found = sorted(directory.rglob(PATTERN))
    if not found:
        raise Invalid(f"{directory}: there is no file {PATTERN} in it.")
    return found


class Cases(NamedTuple):
    """The cases of a file, and the definition that they run."""

    file: Path
    definition: dict[str, Any]
    cases: list[Case]


def load_cases(file: Path) -> Cases:
    """Read a file of cases, and the workflow that it names. Raises `Invalid` if one cannot be used, and OSError."""
    given = _read(file)
    try:
        loaded = msgspec.convert(given, CaseFile)
    except msgspec.ValidationError as error:
        raise Invalid(f"{file}: {invalid(error, 'file', CaseFile, given).message}") from None
    definition = _definition(file.parent / loaded.flow)
    parts = {name: part for name, part in definition.items() if name in PARTS}
    return Cases(file, parts, loaded.cases)


def _definition(file: Path) -> dict[str, Any]:
    """The workflow in a file, which is the first one of an export as YAML."""
    if file.suffix in (".yaml", ".yml"):
        from trunkline.actors.workflows.flows.yaml_exports import read_exports  # the reader of YAML is large

        flows: list[dict[str, Any]] = read_exports({str(file): file.read_bytes()}, {}).body["flows"]
        if not flows:
            raise Invalid(f"{file}: has no workflow.")
        return flows[0]
    flow = _read(file)
    if not isinstance(flow, dict):
        raise Invalid(f"{file}: has no object; a workflow is one, as flows.post takes it.")
    return flow


def _read(file: Path) -> Any:
    try:
        return msgspec.json.decode(file.read_bytes())
    except msgspec.DecodeError as error:
        raise Invalid(f"{file}: {error}.") from None


async def run_cases(loaded: Cases, pool: ScriptPool, limits: Limits) -> list[Outcome]:
    """Run the cases of a file, one after the other."""
    file, definition, cases = loaded
    return [Outcome(file, case.name, await _problem(definition, case, pool, limits)) for case in cases]


async def _problem(definition: dict[str, Any], case: Case, pool: ScriptPool, limits: Limits) -> str | None:
    identity = {"applicationId": ROOT.hex(), "flowId": ROOT.hex(), "flowName": case.name}
    try:
        run = new_run(case, DEFAULT_TIME_MS, ROOT, identity, pool, limits)
        shown = await dry_run(definition, case, run)
    except Invalid as refusal:
        return refusal.message
    return next(_differences(case.expect, shown), None)


def _differences(expected: Expected, shown: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each thing that is not as expected."""
    error = shown.get("error")
    found = None if error is None else error["name"]
    if expected.error is not UNSET and found != expected.error:
        told = "" if error is None else f" (at {error['nodeId'] or error['nodeType']}: {error['message']})"
        yield f"error: {expected.error!r} is expected, {found!r} came{told}."
    visited = [step["nodeId"] for step in shown["steps"]]
    if expected.nodes is not UNSET and visited != expected.nodes:
        yield f"nodes: {expected.nodes} are expected, {visited} were visited."
    last = next((step["payload"] for step in reversed(shown["steps"]) if "payload" in step), None)
    for path, value in expected.payload.items():
        try:
            got = compile_path(path).get(last)
        except FormulaError as problem:
            yield f"payload: {problem}"
            continue
        if got is UNDEFINED or got != value or isinstance(got, bool) != isinstance(value, bool):
            yield f"payload: {path} is {'nothing' if got is UNDEFINED else repr(got)}; {value!r} is expected."
