"""The OpenAPI 3.1 document, generated from the route table, so that it always agrees with the API.

The sentences about fields are in `descriptions.py`, the examples in `examples.py`. The module is long because it lists
the groups of all operations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_origin

import msgspec

from trunkline.actors.catalogue import KINDS, QUERY_FIELDS
from trunkline.actors.core.query import schema as query_schema
from trunkline.actors.people.audit.messages import AUDIT_NAMES
from trunkline.http.calls.errors import ENGINE_STATUS, STATUS
from trunkline.http.calls.idempotency import STRING
from trunkline.http.calls.route import DEVICE_PATH, Route
from trunkline.http.calls.route_table import RouteTable
from trunkline.http.openapi import descriptions, examples

_REF = "#/components/schemas/{name}"
_COMMON_RESPONSES = {
    400: "The request is malformed or its content is not acceptable",
    401: "No token, or one that is not valid",
    403: "The token lacks the scope, or does not give access to the resource",
    404: "The resource or a parent of it does not exist",
    414: "The path with its query string is too long; send less in it",
    503: "The server is overloaded; repeat the call after Retry-After",
}
_BODILESS = (101, 204, 304)
_WRITE_RESPONSES = {507: "The disk is full; nothing was stored"}
_COMMON_PARAMETERS = (
    ("_links", "false leaves `_links` out of the response"),
    ("_actions", "Accepted, has no effect"),
    ("_embedded", "Accepted, has no effect"),
)
_KEY_PARAMETER: Mapping[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": (
        "A string in double quotes, such as a UUID. If a call is repeated with the same key, it is not done again, and "
        "the answer is the stored one of the first call"
    ),
    "schema": {"type": "string", "pattern": f"^{STRING.pattern}$"},
}
_KEY_RESPONSES = {
    409: "The first call with the same Idempotency-Key is still in work; repeat it after Retry-After",
    422: "The Idempotency-Key belongs to a call with another path, query or body",
}
_GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Log in": ("Get a token; every other call needs one.", ("auth", "whitelabels")),
    "Applications": (
        "An application holds devices, tables, events and keys.",
        ("applications", "application", "mqtt"),
    ),
    "Devices": (
        "The devices of an application, and their declared attributes.",
        ("devices", "device", "deviceAttributes", "deviceAttribute"),
    ),
    "States, commands and streams": (
        "What one device reports, what it is told, and both as they happen.",
        (),
    ),
    "Time series": ("The values of many devices at once, and their export.", ("data",)),
    "Events": ("What needs attention, and who dealt with it.", ("events", "event")),
    "Data tables": (
        "Tables with typed columns, and queries over their rows.",
        ("dataTables", "dataTable", "dataTableRows", "dataTableRow"),
    ),
    "Jobs and downloads": (
        "What takes long, such as exports, runs as a job; its file is downloaded by a link.",
        ("applicationJobLogs", "applicationJobLog", "downloads"),
    ),
    "Files": (
        "Files and directories of an application: private ones, read by links that expire, and public ones.",
        ("privateFiles", "privateFile", "files", "file", "uploads", "contents"),
    ),
    "Access keys": ("Devices log in with a key and its secret.", ("applicationKeys", "applicationKey")),
    "Certificates": (
        "Certificates of devices, and the authorities that issue them.",
        (
            "applicationCertificates",
            "applicationCertificate",
            "applicationCertificateAuthorities",
            "applicationCertificateAuthority",
        ),
    ),
    "API tokens": (
        "Tokens for programs, with chosen scopes.",
        ("applicationApiTokens", "applicationApiToken", "userApiTokens", "userApiToken"),
    ),
    "Dashboards": (
        "Descriptions of charts for a client to draw; of an application, or of users.",
        ("applicationDashboards", "applicationDashboard", "dashboards", "dashboard"),
    ),
    "Alarms": (
        "What must not be so of devices, which of it is so now, and who is told.",
        ("alarmRules", "alarmRule", "alarmGroups", "alarmGroup", "alarms"),
    ),
    "Device recipes": ("Templates of devices.", ("deviceRecipes", "deviceRecipe")),
    "Experience": (
        "Web pages and endpoints of an application, and the people who use them.",
        (
            "experience",
            "experienceEndpoints",
            "experienceEndpoint",
            "experienceViews",
            "experienceView",
            "experienceVersions",
            "experienceVersion",
            "experienceDomains",
            "experienceDomain",
            "experienceSlugs",
            "experienceSlug",
            "experienceGroups",
            "experienceGroup",
            "experienceUsers",
            "experienceUser",
        ),
    ),
    "Workflows": (
        "What reacts to devices, timers and requests: workflows, their versions and their runs.",
        ("flows", "flow", "flowVersions", "flowVersion", "flowRuns", "flowRun"),
    ),
    "Deployments": (
        "Which versions of workflows edge and embedded devices are to run: recorded, and not carried to them yet.",
        ("edgeDeployments", "edgeDeployment", "embeddedDeployments", "embeddedDeployment"),
    ),
    "Webhooks": (
        "Addresses that other systems call.",
        ("webhooks", "webhook", "webhookAddress"),
    ),
    "Credentials": ("Secrets of other services.", ("credentials", "credential")),
    "Integrations": (
        "Connections to MQTT brokers and WebSocket servers; those to other services are stored.",
        ("integrations", "integration"),
    ),
    "Notebooks": (
        "Programs over the data of an application: stored, not executed.",
        ("notebooks", "notebook"),
    ),
    "Resource jobs": (
        "Workflows that run once for each row, device or user: stored, not executed.",
        ("resourceJobs", "resourceJob"),
    ),
    "Application templates": (
        "Ready-made contents of applications.",
        ("applicationTemplates", "applicationTemplate"),
    ),
    "Current user": ("The user of the token.", ("me",)),
    "Audit log": (
        "Who changed what in an organization, or in the applications of a person, and from where.",
        ("auditLogs", "auditLog", "userAuditLogs", "userAuditLog"),
    ),
    "Organizations": ("Users who share applications, each with a role.", ("orgs", "org", "orgInvites")),
    "The server": ("What concerns all tenants, for operators.", ("server",)),
}
"""The groups in the order in which one meets them: a sentence, and the operations that belong to it by their prefix."""

_ABOUT_USERS = ("Current user", "Audit log", "Organizations", "The server")
"""The last groups."""
_GROUP_OF = {prefix: group for group, (_, prefixes) in _GROUPS.items() for prefix in prefixes}


class ErrorBody(msgspec.Struct, frozen=True):
    """An error."""

    type: str
    message: str


def document(table: RouteTable, version: str) -> dict[str, Any]:
    """The document as a JSON-ready dictionary."""
    types: list[Any] = [ErrorBody]
    for route in table.routes:
        replies = (_item(route), route.job, route.refusal, route.problems, route.checked)
        parts = (route.body, route.form, *replies, route.query)
        types += [each for each in parts if each is not None]
        if route.event is not None:
            types.append(route.event[1])
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    by_type = dict(zip(map(repr, types), schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in table.routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_type, components)
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "Trunkline",
            "version": version,
            "description": (
                "An application platform for connected devices. Log in first, and send the token with every other "
                "call. Every error is `{type, message}`. Every operation also takes the parameters "
                "`_links`, `_actions` and `_embedded`."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "tags": [{"name": name, "description": text} for name, text in _groups(table).items()],
        "paths": paths,
        "components": {
            "schemas": components | query_schema.components(QUERY_FIELDS),
            "parameters": {
                name: {
                    "name": name,
                    "in": "query",
                    "required": False,
                    "description": description,
                    "schema": {"type": "boolean"},
                }
                for name, description in _COMMON_PARAMETERS
            },
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }
    for route in table.routes:
        if route.form is not None:
            # To JSON a file would be text in base64.
            properties = components[route.form.__name__]["properties"]
            for name, each in properties.items():
                if each.get("contentEncoding") == "base64":
                    properties[name] = {"type": "string", "format": "binary"}
    _fill_in_names(components)
    # A copy, because the schemas share parts, and each place has a description of its own.
    copy: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(whole))
    descriptions.describe(copy)
    return copy


def _fill_in_names(node: Any) -> None:
    """Put what the audit log calls the kinds of records in the place that schemas leave for it."""
    if isinstance(node, list):
        for each in node:
            _fill_in_names(each)
    elif isinstance(node, dict):
        if node.get("enum") == AUDIT_NAMES:
            del node["type"]
            node["enum"] = sorted(kind.audited_as for kind in KINDS.values() if kind.audited_as is not None)
        for each in node.values():
            _fill_in_names(each)


def _groups(table: RouteTable) -> dict[str, str]:
    """The sentence of each group, in their order: groups that rows name come before those about the user."""
    before = {name: sentence for name, (sentence, _) in _GROUPS.items()}
    after = {name: before.pop(name) for name in _ABOUT_USERS}
    return before | {route.group.name: route.group.sentence for route in table.routes if route.group} | after


def _group(route: Route) -> str:
    if route.group is not None:
        return route.group.name
    prefix = route.operation.split(".")[0]
    if prefix == "device" and route.path.startswith(f"{DEVICE_PATH}/") and route.ok != 202:
        return "States, commands and streams"
    if prefix not in _GROUP_OF:
        raise TypeError(
            f"{route.operation}: {prefix} has no group in the OpenAPI document; give the row a `group`, or add it to "
            "_GROUPS"
        )
    return _GROUP_OF[prefix]


def _item(route: Route) -> Any:
    return route.reply[1] if isinstance(route.reply, tuple) else route.reply


def _operation(route: Route, by_type: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "tags": [_group(route)],
        "summary": route.summary,
        "parameters": [
            *_path_parameters(route),
            *_query_parameters(route, components),
            *([_KEY_PARAMETER] if route.takes_key else []),
        ],
        "responses": _responses(route, by_type),
        "x-scopes": sorted(route.scopes),
    }
    doc = (route.handler or route.message).__doc__
    if doc:
        operation["description"] = re.sub(r"\s+", " ", doc.strip())
    if route.throttle is not None:
        operation["x-throttle"] = route.throttle
    if route.access == "none":
        operation["security"] = []
        del operation["x-scopes"]
    elif route.anonymous:
        operation["security"] = [{}, {"bearer": []}]
    if route.body is not None:
        operation["requestBody"] = {
            "required": not route.optional_body,
            "content": {"application/json": _with_example(by_type[repr(route.body)], route)},
        }
    if route.form is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"multipart/form-data": _with_example(by_type[repr(route.form)], route)},
        }
    return operation


def _with_example(schema: dict[str, Any], route: Route) -> dict[str, Any]:
    example = examples.of_body(route)
    return {"schema": schema} | ({} if example is None else {"example": example})


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    found = []
    for part in route.path_parameters:
        schema = {"type": "string", **part.form}
        found.append(
            {
                "name": part.placeholder,
                "in": "path",
                "required": True,
                "description": descriptions.of_parameter("path", part.placeholder),
                "schema": schema,
                "example": examples.of_path(route, part.placeholder),
            }
        )
    return found


def _query_parameters(route: Route, components: dict[str, Any]) -> list[dict[str, Any]]:
    query = components[route.query.__name__]
    required = query.get("required", ())
    given = examples.QUERIES.get(route.operation, {})
    found: list[dict[str, Any]] = []
    for name, each in query["properties"].items():
        shown = {key: value for key, value in each.items() if not (key == "default" and value is None)}
        parameter: dict[str, Any] = {"name": name, "in": "query", "required": name in required}
        structured = _is_structured(shown)
        schema = shown if structured else _without_null(shown)
        form = schema.pop("description", None)
        if (description := descriptions.of_parameter(route.query.__name__, name, form)) is not None:
            parameter["description"] = description
        parameter |= (
            {"content": {"application/json": {"schema": schema}}} if structured else {"schema": schema}
        )
        if name in given:
            parameter["example"] = given[name]
        found.append(parameter)
    found += [{"$ref": f"#/components/parameters/{name}"} for name, _ in _COMMON_PARAMETERS]
    return found


def _is_structured(schema: dict[str, Any]) -> bool:
    return any(each.get("type") in ("object", "array") for each in schema.get("anyOf", ()))


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without null: an optional parameter may be omitted, but is never null."""
    if "enum" in schema and None in schema["enum"]:
        return {**schema, "enum": [each for each in schema["enum"] if each is not None]}
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if len(choices) == 1:
        return {**{key: value for key, value in schema.items() if key != "anyOf"}, **choices[0]}
    return schema


def _responses(route: Route, by_type: dict[str, Any]) -> dict[str, Any]:
    found = {str(route.ok): _success(route, by_type)}
    if route.job is not None:
        content = {"application/json": {"schema": by_type[repr(route.job)]}}
        found["202"] = {
            "description": "A job is queued that will carry out the operation",
            "content": content,
        }
    codes = dict(_COMMON_RESPONSES)
    if route.access == "none":
        del codes[401], codes[403], codes[404]
    elif route.method == "GET" and not route.path_parameters:
        del codes[404]
    if route.streams_body:
        codes |= {
            408: "The body came too slowly",
            413: "The body has more bytes than a call takes, or than were announced",
            415: "The body is of another type",
        }
    if route.body is not None:
        codes |= {
            413: "The body has more bytes than a call takes",
            415: "The body is not application/json",
        }
    if route.access == "write":
        codes |= _WRITE_RESPONSES
    if route.takes_key:
        codes |= _KEY_RESPONSES
    if route.method in ("PATCH", "DELETE"):
        codes[412] = "If-Match names another revision than the stored one"
    if route.method == "GET" and route.event is None:
        codes[304] = "The answer is the one that If-None-Match names"
    if route.method == "GET" and (isinstance(route.reply, tuple) or get_origin(route.reply) in (list, dict)):
        codes[413] = "The answer would be too large; ask for fewer entries, or for a shorter range"
    codes |= route.also
    assert codes.keys() <= {*STATUS.values(), *ENGINE_STATUS.values(), *_BODILESS, 206}
    error = {"application/json": {"schema": {"$ref": _REF.format(name="ErrorBody")}}}
    for code in sorted(codes):
        found[str(code)] = {"description": codes[code]} | ({} if code in _BODILESS else {"content": error})
    if 206 in codes:
        found["206"]["content"] = found["200"]["content"]
    if route.refusal is not None:
        forms = [by_type[repr(route.refusal)], error["application/json"]["schema"]]
        found["400"]["content"] = {"application/json": {"schema": {"anyOf": forms}}}
    if route.problems is not None:
        content = {"application/json": {"schema": by_type[repr(route.problems)]}}
        found["422"] = {"description": "Everything that is wrong; nothing was changed", "content": content}
    if route.checked is not None:
        content = {"application/json": {"schema": by_type[repr(route.checked)]}}
        found["200"] = {"description": "Only checked: it can be done", "content": content}
    _add_headers(route, found)
    return found


def _add_headers(route: Route, found: dict[str, Any]) -> None:
    """Add the headers of the throttle and of repeated calls to the responses."""
    success = found[str(route.ok)]
    if route.throttle is not None and route.handler is None:
        headers = {
            name: {"description": description, "schema": {"type": "string"}}
            for name, description in (
                (
                    "RateLimit",
                    "the calls (of a backlog the states) left, and the seconds until the oldest leaves the window",
                ),
                ("RateLimit-Policy", "the calls, or states, of the bucket and its window in seconds"),
            )
        }
        success["headers"] = {**headers}
        found["429"]["headers"] = {**headers, "Retry-After": {"schema": {"type": "integer"}}}
    if route.takes_key:
        success.setdefault("headers", {})["Idempotent-Replayed"] = {
            "description": "true: this is the stored answer of an earlier call with the same Idempotency-Key",
            "schema": {"const": "true"},
        }


def _success(route: Route, by_type: dict[str, Any]) -> dict[str, Any]:
    if route.event is not None:
        name, data = route.event
        events = {name: by_type[repr(data)]}
        if route.resets:
            message = {"type": "string", "description": "That some of what the client missed is not kept"}
            events["reset"] = {"type": "object", "properties": {"message": message}, "required": ["message"]}
        return {
            "description": f"A stream of `{name}` events; comments keep the connection open",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "x-events": events}},
        }
    if route.ok == 101:
        return {"description": "The connection goes on as a WebSocket"}
    if route.reply is bytes:
        binary = {"type": "string", "format": "binary"}
        return {"description": "The file", "content": {"*/*": {"schema": binary}}}
    schema = by_type[repr(_item(route))]
    if isinstance(route.reply, tuple):
        schema = _envelope(route, schema)
    return {"description": "Done", "content": {"application/json": {"schema": schema}}}


def _envelope(route: Route, item: dict[str, Any]) -> dict[str, Any]:
    """The answer of a list: its page, what was asked for, and what the path and the row say beside that."""
    whole, text = {"type": "integer", "minimum": 0}, {"type": "string"}
    asked = {each.encode_name for each in msgspec.structs.fields(route.query)}
    ids = sorted(f"{name}Id" for name in route.id_names if name != "user")
    return {
        "type": "object",
        "required": ["items", "count", "totalCount", "_type"],
        "properties": {
            "items": {"type": "array", "items": item},
            "count": whole,
            "totalCount": whole,
            **{name: whole for name in ("page", "perPage") if name in asked},
            **{name: text for name in ("sortField", "filterField", "filter") if name in asked},
            **({"sortDirection": {"enum": ["asc", "desc"]}} if "sortDirection" in asked else {}),
            **({"query": {"type": "object"}} if "query" in asked else {}),
            **{name: msgspec.json.schema(type) for name, type in route.beside.items()},
            **dict.fromkeys(ids, text),
            "_type": text,
            "_links": {"type": "object"},
        },
        "additionalProperties": False,
    }
