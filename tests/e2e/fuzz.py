"""Generated calls to every operation of the API, made from its OpenAPI document by schemathesis:

    .venv/bin/python -m tests.e2e.fuzz --cases 100 [--engine stock] [--only PART_OF_METHOD_AND_PATH]

Starts a server of its own. Half of the calls follow the document, the other half break it somewhere; two thirds of
the path ids are replaced by those of records that exist. Reported are a server error, a status, a header or a body
that the document does not have, and invalid data that was accepted. Prints the kinds of failures, with one call for
each, and a summary; ends with 1 if there are any, or if the server logged a traceback. The event streams are left
out: they have no end.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from zlib import crc32

import hypothesis
import requests
import schemathesis
import trio
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core.parameters import ParameterLocation

from tests.e2e.server_process import serving

CHECKS = [  # and `negative_data_rejection`, where something was made invalid that the server must see
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_headers_conformance,
    schemathesis.checks.response_schema_conformance,
]
REQUEST_TIMEOUT_S = 60
PASSWORD_PATTERN = "^[A-Z]{4}[a-z]{4}[0-9]{4}[!-/]{4}$"


@dataclass
class Found:
    """What came of the calls."""

    calls: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    """An example for each operation and kind of failure."""
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    successes: Counter[str] = field(default_factory=Counter)
    """Answers below 300 for each operation."""


def generated(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the patterns that the generator cannot fill replaced by such as it can."""

    def simpler(node: Any) -> Any:
        if isinstance(node, dict):
            return {
                key: _pattern(value) if key == "pattern" and isinstance(value, str) else simpler(value)
                for key, value in node.items()
            }
        return [simpler(each) for each in node] if isinstance(node, list) else node

    simple: dict[str, Any] = simpler(document)
    return simple


def _pattern(pattern: str) -> str:
    return PASSWORD_PATTERN if "(?=" in pattern else pattern.replace(r"(?!\n)", "")


class World:
    """Records that exist, by the name of the path parameter that chooses them. Deleted ones are made again."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {token}"
        self.ids: dict[str, str] = {}
        self.made = 0

    def prepare(self) -> None:
        """Make what is missing."""
        if not self._is_there("/applications/{applicationId}"):
            self.make("applicationId", "/applications", {"name": "one"})
        application = "/applications/{applicationId}"
        if not self._is_there(application + "/data-tables/{dataTableId}/rows/{rowId}"):
            self.make("dataTableId", application + "/data-tables", {"name": f"table {self.made}"})
            table = application + "/data-tables/{dataTableId}"
            self._post(table + "/column", {"name": "a", "dataType": "number", "constraint": "optional"})
            self.make("rowId", table + "/rows", {"a": 1})
        for parameter, path, body in (
            ("deviceId", "/devices", {"name": "one", "attributes": [{"name": "a", "dataType": "number"}]}),
            ("eventId", "/events", {"level": "info", "subject": "one"}),
            ("applicationKeyId", "/keys", {}),
            ("dashboardId", "/dashboards", {"name": "one"}),
            ("deviceRecipeId", "/device-recipes", {"name": "one"}),
            ("webhookId", "/webhooks", {"name": f"webhook {self.made}"}),
        ):
            if not self._is_there(f"{application}{path}/{{{parameter}}}"):
                self.make(parameter, application + path, body)

    def _is_there(self, path: str) -> bool:
        try:
            return self.session.get(self.url + path.format(**self.ids), timeout=REQUEST_TIMEOUT_S).ok
        except KeyError:
            return False

    def make(self, parameter: str, path: str, body: dict[str, Any]) -> None:
        """Create a record, and choose it from now on."""
        self.made += 1
        record = self._post(path, body)
        self.ids[parameter] = record.get(parameter) or record["id"]

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        answer = self.session.post(self.url + path.format(**self.ids), json=body, timeout=REQUEST_TIMEOUT_S)
        assert answer.ok, f"POST {path} {body}: {answer.status_code} {answer.text}"
        return answer.json()


BOTH = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
"""Calls that follow the document, and calls that break it."""


def one_of_both(label: str) -> tuple[GenerationMode, ...]:
    """Which of them an operation gets in the short form."""
    return (BOTH[crc32(label.encode()) % len(BOTH)],)


def fuzz_operation(
    operation: Any, world: World, cases: int, found: Found, modes: tuple[GenerationMode, ...]
) -> None:
    """Make `cases` calls of one operation, those invalid on purpose half of them if both are made."""
    label = operation.label

    def call(case: Case[Any], real: bool) -> None:
        if real and case.path_parameters:
            for name in case.path_parameters:
                if name in world.ids:
                    case.path_parameters[name] = world.ids[name]
        found.calls += 1
        response = case.call(base_url=world.url, session=world.session, timeout=REQUEST_TIMEOUT_S)
        found.statuses[response.status_code] += 1
        found.successes[label] += response.status_code < 300
        try:
            case.validate_response(response, checks=CHECKS + _rejection(case, response, real))
        except (schemathesis.core.failures.FailureGroup, schemathesis.core.failures.Failure) as failed:
            for failure in getattr(failed, "exceptions", [failed]):
                kind = (label, f"{type(failure).__name__}: {_first_line(failure)}")
                found.counts[kind] += 1
                found.failures.setdefault(
                    kind,
                    f"{case.as_curl_command()[:1500]}\n      -> {response.status_code} {response.text[:400]}",
                )

    for mode in modes:
        try:
            strategy = operation.as_strategy(generation_mode=mode)
            run = hypothesis.given(strategy, st.integers(0, 2).map(lambda number: number < 2))(call)
            run = hypothesis.settings(
                max_examples=max(1, cases // len(modes)),
                derandomize=True,
                database=None,
                deadline=None,
                phases=[hypothesis.Phase.generate],
                suppress_health_check=list(hypothesis.HealthCheck),
            )(run)
            run()
        except (hypothesis.errors.Unsatisfiable, schemathesis.errors.InvalidSchema) as nothing:
            if mode is GenerationMode.POSITIVE:
                found.failures[(label, f"nothing could be generated: {type(nothing).__name__}")] = str(
                    nothing
                )


def _rejection(case: Case[Any], response: Any, real: bool) -> list[Any]:
    """The check that an invalid call is refused: with any status from 400 on.

    Only where what was sent is invalid. Unknown headers are valid, `real` replaced invalid path ids, and a query may
    look valid in a URL although the generated values were not: a list with one number looks like the number.
    """
    if response.status_code >= 400 or case.meta is None:
        return []
    invalid = {location for location, part in case.meta.components.items() if part.mode.is_negative}
    broken = ParameterLocation.BODY in invalid or (ParameterLocation.PATH in invalid and not real)
    sent = parse_qsl(urlsplit(response.request.url).query, keep_blank_values=True)
    schemas = {each.name: _schema(each.definition) for each in case.operation.query}
    if broken or any(not _may_be(value, schemas.get(name)) for name, value in sent if "[" not in name):
        return [schemathesis.checks.negative_data_rejection]
    return []


def _schema(parameter: dict[str, Any]) -> dict[str, Any]:
    """The schema of a query parameter. The shared parameters are switches; one with JSON may be anything."""
    schema: dict[str, Any] = {"type": "boolean"} if "$ref" in parameter else parameter.get("schema", {})
    return schema


def _may_be(text: str, schema: dict[str, Any] | None) -> bool:
    """Whether the text of a query parameter may be valid. A blank one is, if the parameter exists, and `null` too."""
    if schema is None or text in ("", "null"):
        return schema is not None
    if "enum" in schema:
        return text in schema["enum"]
    if schema.get("type") == "boolean":
        return text.lower() in ("true", "false", "1", "0")
    if schema.get("type") == "integer":
        return re.fullmatch(r"\s*[+-]?[0-9_]+(\.0*)?\s*", text) is not None
    return True


def _first_line(failure: Any) -> str:
    text = str(getattr(failure, "title", "") or failure)
    return re.sub(r"[0-9a-f]{24}", "ID", text.splitlines()[0])[:160]


def fuzz(url: str, token: str, cases: int, only: str = "", *, short: bool = False) -> Found:
    """Make `cases` calls of each operation of the server; in the short form all valid or all invalid ones."""
    document = requests.get(url + "/openapi.json", timeout=REQUEST_TIMEOUT_S).json()
    schema = schemathesis.openapi.from_dict(generated(document))
    schema.location = url
    world, found, changed = World(url, token), Found(), True
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]  # a document that is wrong ends the run
        if operation.path.endswith(("Stream", "/me/logout")) or only not in operation.label:
            continue  # a stream does not end, and a logout ends the token of the other calls
        if changed:
            world.prepare()
        changed = operation.method.upper() not in ("GET", "HEAD")
        if "{apiTokenId}" in operation.path:  # of the user or of the application
            world.make("apiTokenId", operation.path.removesuffix("/{apiTokenId}"), {"name": "one"})
        known = set(found.failures)
        modes = one_of_both(operation.label) if short else BOTH
        fuzz_operation(operation, world, cases, found, modes)
        for kind in found.failures.keys() - known:
            sys.stdout.write(
                f"{kind[0]}: {kind[1]} ({found.counts[kind]} of {cases} calls)\n    {found.failures[kind]}\n"
            )
    return found


async def main() -> int:
    """Run a server and fuzz it; the exit code."""
    parser = argparse.ArgumentParser(description="Call every operation with generated requests.")
    parser.add_argument("--cases", type=int, default=100, help="calls of each operation")
    parser.add_argument("--engine", default="fast", choices=["fast", "stock"])
    parser.add_argument("--only", default="", help="operations whose method and path contain this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        async with serving(Path(folder) / "data", "--limits", "off", "--engine", options.engine) as server:
            found = await trio.to_thread.run_sync(
                partial(fuzz, server.url, server.token, options.cases, options.only)
            )
            log = server.log
    summary = {
        "calls": found.calls,
        "statuses": dict(sorted(found.statuses.items())),
        "kinds of failures": len(found.failures),
        "tracebacks": log.count("Traceback"),
        "without a success": sorted(label for label, count in found.successes.items() if not count),
    }
    sys.stdout.write(json.dumps(summary) + "\n")
    return 1 if found.failures or "Traceback" in log else 0


if __name__ == "__main__":
    sys.exit(trio.run(main))
