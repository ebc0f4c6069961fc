"""Checks every response against the OpenAPI document: status, content type, headers, and the schema of the body.

Owns only the comparison. It is a hook of every client of the tests, so each test that calls a server also checks that
the responses are as documented, and that all errors have the same form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import httpx
from jsonschema_rs import Draft202012, Draft202012Validator, Registry

from trunkline.http.calls.errors import ENGINE_STATUS, STATUS
from trunkline.http.openapi.document import document
from trunkline.http.routes import TABLE

_URI = "urn:trunkline:openapi"
_EVENTS = "text/event-stream"
_EVERYWHERE = frozenset({405, 408, 413, 431, 500, 503})
"""Errors that any request may get, independent of its operation: only their form is checked."""

_STATUS = STATUS | ENGINE_STATUS
_ERROR = {
    "type": "object",
    "properties": {
        "type": {"enum": [*_STATUS]},
        "message": {"type": "string", "minLength": 10},
    },
    "required": ["type", "message"],
    "additionalProperties": False,
}
_HEADERS = {401: "www-authenticate", 405: "allow", 429: "retry-after"}


class Documented:
    """An OpenAPI document, and the responses that it allows."""

    def __init__(self, api: Mapping[str, Any]) -> None:
        self.api = api
        self._registry = Registry([(_URI, _closed(api))], draft=Draft202012)
        self._error = Draft202012Validator(_ERROR)
        self._validators: dict[str, Draft202012Validator] = {}
        self._paths = sorted(
            ((path, _pattern(path)) for path in api["paths"]),
            key=lambda found: (found[0].count("{"), found[0]),
        )

    def operation(self, method: str, path: str) -> tuple[str, Mapping[str, Any]] | None:
        """The documented path and operation of this request; None if there is none."""
        for template, pattern in self._paths:
            if pattern.fullmatch(path):
                item = self.api["paths"][template]
                method = method.lower() if method.lower() in item else "get" if method == "HEAD" else ""
                return (template, item[method]) if method in item else None
        return None

    def problems(self, method: str, path: str, response: httpx.Response) -> list[str]:
        """The differences between the response and the document; empty if there is none."""
        status = response.status_code
        found = self.operation(method, path)
        said = "" if found is None else json.dumps(found[1]["responses"].get(str(status)))
        own = "anyOf" in said or status == _MANY_PROBLEMS
        problems = _error_problems(response, self._error, says_more=own) if status >= 400 else []
        if found is None or (status in _EVERYWHERE and str(status) not in found[1]["responses"]):
            return problems
        template, operation = found
        documented = operation["responses"].get(str(status))
        if documented is None:
            return [*problems, f"status {status} is not documented: {response.text[:300]}"]
        content = documented.get("content", {})
        if status == 304 or method == "HEAD":
            return problems if not response.content else [*problems, "there is a body"]
        if not content:
            return problems
        (content_type,) = content
        if content_type == "*/*":
            return problems
        if content_type != response.headers.get("content-type", "").partition(";")[0]:
            return [*problems, f"content type {response.headers.get('content-type')!r}, not {content_type}"]
        if content_type == _EVENTS:
            return problems
        keys = ["paths", template, method.lower(), "responses", str(status), "content", content_type]
        pointer = "/".join(_escaped(key) for key in [*keys, "schema"])
        return problems + self._mismatches(pointer, response.json())

    def _mismatches(self, pointer: str, value: Any) -> list[str]:
        validator = self._validators.get(pointer)
        if validator is None:
            schema = {"$ref": f"{_URI}#/{pointer}"}
            validator = Draft202012Validator(schema, registry=self._registry)
            self._validators[pointer] = validator
        return _errors(validator, value)


def _errors(validator: Draft202012Validator, value: Any) -> list[str]:
    """What a schema has against a value, each with its place in it."""
    return [
        f"/{'/'.join(map(str, found.instance_path))}: {found.message[:300]}"
        for found in validator.iter_errors(value)
    ]


_MANY_PROBLEMS = 422
"""The status of a `Validation` with a list of what is not acceptable."""


def _error_problems(response: httpx.Response, error: Draft202012Validator, *, says_more: bool) -> list[str]:
    """Check the form of an error: `{type, message}`, the type of the status, and its headers."""
    if response.request.method == "HEAD":
        return []
    try:
        body = response.json()
    except ValueError:
        return [f"the error is not JSON: {response.text[:300]}"]
    if says_more:
        body = {name: body.get(name) for name in ("type", "message")}
    problems = [f"error: {found}" for found in _errors(error, body)]
    many = response.status_code == _MANY_PROBLEMS and not problems and body["type"] == "Validation"
    if not problems and not many and response.status_code != _STATUS[body["type"]]:
        problems.append(f"type {body['type']} with status {response.status_code}")
    header = _HEADERS.get(response.status_code)
    if header is not None and header not in response.headers:
        problems.append(f"{response.status_code} without {header}")
    return problems


def _closed(node: Any) -> Any:
    """The document with `additionalProperties: false` in every object with properties, to find undocumented fields."""
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {key: _closed(value) for key, value in node.items()}
    if closed.get("type") == "object" and isinstance(closed.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return closed


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"(\{[^}]+\})", path)
    return re.compile("".join("[^/]+" if part.startswith("{") else re.escape(part) for part in parts))


def _escaped(key: str) -> str:
    """A key in a JSON pointer in a URI fragment."""
    return key.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")


@cache
def documented() -> Documented:
    """The document of this server."""
    return Documented(json.loads(json.dumps(document(TABLE, "test"))))


async def check_response(response: httpx.Response) -> None:
    """An httpx hook: fails the test if a response is not as documented. Streams are not read."""
    request = response.request
    if request.method == "HEAD" or not response.headers.get("content-type", "").startswith(_EVENTS):
        await response.aread()
    problems = documented().problems(request.method, request.url.path, response)
    assert not problems, f"{request.method} {request.url}: {response.status_code}: " + "; ".join(problems)
