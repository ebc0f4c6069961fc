"""Each type of node with its worst settings, made from the forms of the nodes, and the worst values of a payload.

Does not own how they are run (`worst_flows.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from trunkline.actors.engine.nodes import NODE_TYPES
from trunkline.actors.engine.settings import Setting

Json = dict[str, Any]

ROWS: Final = 50
"""Rows, or texts, of a setting that has many."""
BODY: Final = 1_000_000
"""Characters of what a button is pressed with."""
WORST: Final = "data.v"
"""Where the worst value is in the payload."""


def _filled(start: str, item: str, end: str) -> str:
    """A text with so many items that it fits into the body, within a text there."""
    return start + item * (BODY // (len(json.dumps(item, ensure_ascii=False).encode()) - 2)) + end


VALUES: Final = {
    "small": '"1"',
    "objects": _filled("[", '{"key":0,"v":1},', "{}]"),
    "object": "{" + ",".join(f'"k{at}":{at}' for at in range(BODY // 17)) + "}",
    "long": _filled('"', "a", '"'),
    "numbers": _filled("[", "0,", "0]"),
    "texts": _filled("[", '"1,1",', "0]"),
    "columns": _filled("[", "[1,2],", "[]]"),
    "wide": _filled('"', "ä", '"'),
    "markup": _filled('"', "<a>", '"'),
    "lines": _filled('"', "a,b\\n", '"'),
    "json": json.dumps(_filled("[", "0,", "0]")),
    "nested": "[" * 900 + "]" * 900,
    "digits": '"' + "1" * 4_095 + 'x"',
    "huge": "[" + "1" * 300 + ",0" * 90_000 + "]",
}
"""JSON of the worst values, by name. They are decoded by a node, as a body has fewer values."""
SHORT: Final = ("small", "objects", "object", "long")
"""The values of the short form."""

EXAMPLES: Final[dict[str, str]] = {
    "algorithmTemplate": "HS256",
    "HashNode.algorithmTemplate": "sha256",
    "attribute": "temp",
    "attributes": "temp",
    "action": "get",
    "resource": "application",
    "aggregation": "MEAN",
    "columnTemplate": "name",
    "customNodeId": "$customNode",
    "dataTableIdTemplate": "$table",
    "delay": "0",
    "deviceClassTemplate": "standalone",
    "dataTypeTemplate": "number",
    "deviceId": "$device",
    "deviceIds": "$device",
    "deviceIdTemplate": "$device",
    "emailOrIdTemplate": "a@example.com",
    "emailTemplate": "a@example.com",
    "endTimeTemplate": "18:00",
    "startTimeTemplate": "06:00",
    "eventIdTemplate": "$event",
    "fileNameTemplate": "a.txt",
    "filePathTemplate": "/a.txt",
    "gpsCheck": "1,1",
    "gpsCenter": "1,2",
    "groupIdTemplate": "$group",
    "idTemplate": "$device",
    "idTypeTemplate": "uuidV4",
    "VerifyDeviceNode.idTypeTemplate": "experienceGroup",
    "VerifyDeviceNode.idTemplate": "$group",
    "inputTemplate": "{}",
    "integrationId": "losant",
    "WebsocketMessageNode.integrationId": "$integration",
    "keyName": "k",
    "HttpNode.key": "a",
    "numberValue": "1",
    "radius": "1",
    "duration": "1000",
    "dataTemplate": "{}",
    "headerTemplate": "",
    "source": "data.list",
    "Base64DecodeNode.source": "data.text",
    "Base64EncodeNode.source": "data.text",
    "CSVDecodeNode.source": "data.text",
    "JsonDecodeNode.source": "data.json",
    "documentPath": "data.text",
    "deviceIdsPath": "",
    "membersReplacement": "",
    "scopePath": "",
    "sendToDeviceIds": "$device",
    "sourcePath": "time",
    "ObjectNode.sourcePath": "data.object",
    "triggerWorkflowId": "$flow",
    "levelTemplate": "info",
    "method": "toUpper",
    "nameTemplate": "temp",
    "passwordTemplate": "Correct-horse-7",
    "polygonCoords": '["1,1", "1,2", "2,2"]',
    "property": WORST,
    "queryTemplate": "{}",
    "deviceQueryJsonTemplate": "{}",
    "rowIdTemplate": "$row",
    "schema": '{"type": "object"}',
    "script": "payload.data.r = 1",
    "secretTemplate": "secret",
    "sendgridApiKey": "SG.key",
    "SendgridEmailNode.credentialNameTemplate": "",
    "SendgridEmailNode.fromTemplate": "a@example.com",
    "selectorTemplate": "a",
    "stateTemplate": "new",
    "subjectTemplate": "Hello",
    "toAddresses": "a@example.com",
    "tokenTemplate": "$token",
    "topicTemplate": "a/b",
    "triggerVirtualButtonId": "none",
    "uriTemplate": "$web",
}
"""What a setting needs so that the node does its work, by its name, or by type and name."""


UNREACHED: Final = {
    "SendgridEmailNode": "it needs another server",
    "ThrowErrorNode": "to fail is its work",
}
"""Types that fail with what is usual, and why."""


class Case(NamedTuple):
    """A node: which of its settings are the worst, and its configuration."""

    type: str
    label: str
    config: Json


def cases(only: str = "") -> Iterator[Case]:
    """All of them: with each option of each choice everything at its worst, and each setting alone."""
    for type, known in NODE_TYPES.items():
        if only not in type:
            continue
        settings = tuple(each for each in known.form.settings if each.is_shown)
        usual = [each for each in settings if each.is_needed or _is_usual(type, each)]
        plain = {each.name: _plain(type, each) for each in usual}
        yield Case(type, "plain", plain)
        for label, changed in _options(type, settings):
            config = {**plain, **changed}
            paths = {each.name: WORST for each in settings if each.kind == "path"}
            yield Case(type, f"{label}, paths", {**config, **paths})
            worst = {
                each.name: _worst(type, each) for each in settings if each.kind not in ("choice", "flag")
            }
            yield Case(type, f"{label}, all", {**config, **worst, **changed})
        for each in settings:
            yield Case(type, each.name, {**plain, each.name: _worst(type, each)})
        yield Case(type, "long texts", {each.name: _long(type, each) for each in usual})


def _is_usual(type: str, setting: Setting) -> bool:
    """Whether a node does more with the setting than without."""
    known = _example(type, setting)
    return known != "" if known is not None else setting.kind in ("rows", "texts", "path", "expression")


def _example(type: str, setting: Setting) -> str | None:
    return EXAMPLES.get(f"{type}.{setting.name}", EXAMPLES.get(setting.name))


def _options(type: str, settings: tuple[Setting, ...]) -> Iterator[tuple[str, Json]]:
    yield "all", {}
    for each in settings:
        if each.kind == "choice":
            for option in each.options:
                yield f"{each.name} {option}", {each.name: option}
        elif each.kind == "flag":
            yield each.name, {each.name: not each.is_on}
        for inner in each.rows:
            if inner.kind == "choice":
                for option in inner.options:
                    row = {part.name: _worst(type, part) for part in each.rows}
                    yield f"{each.name} {option}", {each.name: [{**row, inner.name: option}]}


def _plain(type: str, setting: Setting) -> Any:
    """A value of a setting with which the node does something small."""
    known = _example(type, setting)
    match setting.kind:
        case "choice":
            return setting.options[0]
        case "flag":
            return setting.is_on
        case "rows":
            return [{each.name: _plain(type, each) for each in setting.rows}]
        case "texts":
            return [known or "{{data.key}}"]
        case "flags":
            return dict.fromkeys(setting.options, True)
        case "json":
            return {}
        case "path":
            return "data.r" if known is None else known
        case "expression":
            return "{{data.n}} > 1"
        case "number":
            return "1" if known is None else known
        case "text" | "template" | "longTemplate":
            return "{{data.key}}" if known is None else known
    raise AssertionError(
        f"{type}.{setting.name}: there is a new kind of settings, {setting.kind}; say in `_plain` and `_worst` of "
        "tests/e2e/worst_nodes.py what is a usual and what is the worst value of it."
    )


def _long(type: str, setting: Setting) -> Any:
    """A value of a setting that takes long to compile: the worst texts are written in the definition."""
    match setting.kind:
        case "template" | "number" | "text" | "longTemplate":
            return _LONG_TEMPLATE
        case "expression":
            return "1" + " + {{data.n}}" * 50 + " + 1" * 8_000
        case "rows":
            return [{each.name: _long(type, each) for each in setting.rows}]
        case "texts":
            return ["{{data.key}}"] * 1_000
        case _:
            return _plain(type, setting)


_LONG_TEMPLATE: Final = "{{data.key}}{{#if data.n}}{{add data.n 1}}{{/if}}" * 400


def _worst(type: str, setting: Setting) -> Any:
    """A value of a setting that leads to the worst value of the payload."""
    match setting.kind:
        case "path":
            return WORST
        case "template" | "number" | "text":
            return f"{{{{{WORST}}}}}"
        case "longTemplate":
            return f"{{{{jsonEncode {WORST}}}}}"
        case "expression":
            return f"{{{{{WORST}}}}} == '{{{{{WORST}}}}}' || {{{{{WORST}}}}} > {{{{data.n}}}}"
        case "rows":
            return [{each.name: _worst(type, each) for each in setting.rows}] * ROWS
        case "texts":
            return [f"{{{{{WORST}}}}}"] * ROWS
        case _:
            return _plain(type, setting)
