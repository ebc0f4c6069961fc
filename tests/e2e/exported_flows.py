"""Workflows in the form of exports: whole records of an application that is not there, with its ids.

`moved` puts the ids of another application in their place, as whoever imports them has to do for what an import does
not create.
"""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]

FROM = {
    name: f"5f0000000000000000000{number:03x}"
    for number, name in enumerate(
        (
            *("application", "log-in", "log-in form", "devices", "log-in page", "devices page"),
            *("table", "webhook", "log-in flow", "devices flow", "alarm flow", "orders flow"),
        )
    )
}
"""The ids in the application from which these were exported."""


def moved(flows: list[Json], to: dict[str, str]) -> Json:
    """The body of an import of workflows, with other ids."""
    text = json.dumps({"flows": flows})
    for name, id in to.items():
        text = text.replace(FROM[name], id)
    body: Json = json.loads(text)
    return body


def _export(
    flow: str, name: str, flow_class: str, triggers: list[Json], nodes: list[Json], **more: Any
) -> Json:
    return {
        "id": FROM[flow],
        "flowId": FROM[flow],
        "applicationId": FROM["application"],
        "applicationName": "Elsewhere",
        "_type": "flow",
        "_etag": '"aa-1"',
        "_exportDate": "2025-05-01T10:00:00.000Z",
        "creationDate": "2025-04-01T10:00:00.000Z",
        "lastUpdated": "2025-04-02T10:00:00.000Z",
        "name": name,
        "description": "",
        "enabled": True,
        "flowClass": flow_class,
        "minimumAgentVersion": None if flow_class == "edge" else "1.0.0",
        "stats": {"runCount": 1207, "errorCount": 3, "byVersion": {}},
        "triggers": triggers,
        "nodes": nodes,
        "globals": [],
        **more,
    }


def _trigger(type: str, key: str, to: str, **config: Any) -> Json:
    meta = {"category": "trigger", "name": type, "label": type, "x": 400, "y": 40, "uiId": f"t-{type}"}
    return {"type": type, "key": key, "config": config, "meta": meta, "outputIds": [[to]]}


def _node(id: str, type: str, config: Json, *outputs: list[str], **meta: Any) -> Json:
    shown = {"category": "logic", "label": id, "x": 400, "y": 200, **meta}
    return {"id": id, "type": type, "config": config, "meta": shown, "outputIds": [*outputs]}


LOG_IN = _export(
    "log-in flow",
    "Log in",
    "experience",
    [_trigger("endpoint", FROM["log-in"], "known"), _trigger("endpoint", FROM["log-in form"], "known")],
    [
        _node("about", "AnnotationNode", {}, description="Shows the form, and takes it."),
        _node("known", "ConditionalNode", {"expression": "{{experience.user}}"}, ["form"], ["home"]),
        _node("form", "ConditionalNode", {"expression": "{{data.method}} === 'post'"}, ["ask"], ["check"]),
        _node(
            "check",
            "ExperienceUserAuthNode",
            {
                "emailTemplate": "{{data.body.email}}",
                "passwordTemplate": "{{data.body.password}}",
                "ttlTemplate": "604800000",
                "invalidateExistingTokens": False,
                "tokenResultPath": "working.token",
                "userResultPath": "working.user",
            },
            ["wrong"],
            ["cookie"],
            authMode="emailPassword",
        ),
        _node(
            "ask",
            "EndpointReplyNode",
            {
                "replyIdPath": "",
                "replyType": "page",
                "responseCodeTemplate": "200",
                "pageIdTemplate": FROM["log-in page"],
                "bodyTemplateType": "none",
                "headerInfo": [{"keyTemplate": "", "valueTemplate": ""}],
            },
            [],
        ),
        _node(
            "wrong",
            "EndpointReplyNode",
            {
                "replyIdPath": "data.replyId",
                "replyType": "page",
                "responseCodeTemplate": "401",
                "pageIdTemplate": FROM["log-in page"],
                "bodyTemplate": '{"failed": true, "email": {{jsonEncode data.body.email}}}',
                "bodyTemplateType": "string",
            },
        ),
        _node(
            "cookie",
            "EndpointReplyNode",
            {
                "replyIdPath": "data.replyId",
                "replyType": "redirect",
                "responseCodeTemplate": "302",
                "bodyTemplate": "/devices?welcome={{encodeURIComponent working.user.firstName}}",
                "cookieInfo": [
                    {
                        "nameTemplate": "authorization",
                        "valueTemplate": "{{working.token}}",
                        "maxAgeTemplate": "604800000",
                    }
                ],
                "sameSiteTemplate": "strict",
            },
        ),
        _node(
            "home",
            "EndpointReplyNode",
            {"replyType": "redirect", "bodyTemplate": "/devices", "responseCodeTemplate": ""},
        ),
    ],
)

DEVICES = _export(
    "devices flow",
    "List the devices of a user",
    "experience",
    [_trigger("endpoint", FROM["devices"], "find")],
    [
        _node(
            "find",
            "GetDeviceNode",
            {
                "findMethod": "experienceUserIdOrEmail",
                "idTemplate": "{{experience.user.id}}",
                "findMultiple": True,
                "resultsPerPage": "100",
                "resultsPage": "0",
                "sortField": "name",
                "sortDirection": "asc",
                "includeState": True,
                "tagsAsObject": True,
                "attributes": [],
                "resultPath": "working.devices",
            },
            ["each"],
        ),
        _node(
            "each",
            "LoopNode",
            {
                "loopSourcePath": "working.devices",
                "currentItemPath": "working.current",
                "mapResultPath": "working.rows",
                "parallel": False,
            },
            ["page"],
            ["may see"],
        ),
        _node(
            "may see",
            "VerifyDeviceNode",
            {
                "deviceIdTemplate": "{{working.current.value.id}}",
                "idTemplate": "{{experience.user.id}}",
                "idTypeTemplate": "experienceUser",
            },
            ["next"],
            ["row"],
        ),
        _node(
            "row",
            "MutateNode",
            {
                "rules": [
                    {
                        "type": "set",
                        "destination": "working.row",
                        "valueTemplate": '{"place": {{jsonEncode working.current.value.tags.place.[0]}}, '
                        '"name": "{{working.current.value.name}}", '
                        '"celsius": {{working.current.value.compositeState.temperature.value}}}',
                        "valueTemplateType": "json",
                    }
                ]
            },
            ["fahrenheit"],
        ),
        _node(
            "fahrenheit",
            "MathNode",
            {
                "statements": [
                    {
                        "expression": "{{working.row.celsius}} * 9 / 5 + 32",
                        "resultPath": "working.row.fahrenheit",
                    }
                ]
            },
            ["next"],
        ),
        _node("next", "LoopCapNode", {"loopNodeId": "each", "mapValuePath": "working.row"}),
        _node(
            "page",
            "EndpointReplyNode",
            {
                "replyIdPath": "data.replyId",
                "replyType": "page",
                "responseCodeTemplate": "200",
                "pageIdTemplate": FROM["devices page"],
                "bodyTemplate": "working.rows",
                "bodyTemplateType": "path",
            },
        ),
    ],
)

ALARM = _export(
    "alarm flow",
    "Cool hot ovens",
    "cloud",
    [_trigger("deviceTag", "kind/oven", "hot", triggerOn="both", batchBehavior="each")],
    [
        _node(
            "hot",
            "ConditionalNode",
            {"expression": "{{data.temperature}} > {{globals.limit}} && {{data.door}} !== true"},
            [],
            ["event"],
        ),
        _node(
            "event",
            "CreateEventNode",
            {
                "dataMethod": "individualFields",
                "levelTemplate": "warning",
                "subjectTemplate": "{{deviceName}} is hot",
                "messageTemplate": "{{format data.temperature '.1f'}} C at {{deviceTags.place.[0]}}",
                "deviceIdTemplate": "{{triggerId}}",
                "dataSourceType": "payloadPath",
                "dataSourcePath": "data",
                "eventTags": [{"keyTemplate": "kind", "valueTemplate": "oven"}],
                "resultPath": "working.event",
            },
            ["command"],
        ),
        _node(
            "command",
            "DeviceSendCommandNode",
            {
                "deviceIdsPath": "triggerId",
                "nameTemplate": "cool",
                "payloadTemplate": '{"to": {{globals.limit}}, "event": "{{working.event.id}}"}',
                "payloadTemplateType": "json",
                "sendToDeviceIds": [],
                "sendToDeviceTags": [],
            },
            ["told"],
        ),
        _node("told", "DebugNode", {"message": "", "property": "working", "level": "verbose"}),
    ],
    globals=[{"key": "limit", "json": "80"}],
)


ORDERS = _export(
    "orders flow",
    "Take orders",
    "cloud",
    [_trigger("webhook", FROM["webhook"], "fits")],
    [
        _node(
            "fits",
            "ValidatePayloadNode",
            {
                "schemaType": "json",
                "schema": '{"type": "object", "required": ["part", "amount"], "properties": '
                '{"part": {"type": "string"}, "amount": {"type": "integer", "minimum": 1}}}',
                "toValidatePath": "data.body",
                "errorsPath": "working.errors",
            },
            ["refuse"],
            ["insert"],
        ),
        _node(
            "insert",
            "DataTableInsertRowNode",
            {
                "dataTableIdTemplate": FROM["table"],
                "dataMethod": "payloadPath",
                "rowPayloadPath": "data.body",
                "resultPath": "working.row",
            },
            ["take"],
        ),
        _node(
            "take",
            "WebhookReplyNode",
            {
                "replyIdPath": "",
                "responseCodeTemplate": "201",
                "bodyTemplateType": "path",
                "bodyTemplate": "working.row",
                "headerInfo": [{"keyTemplate": "Content-Type", "valueTemplate": "application/json"}],
            },
        ),
        _node(
            "refuse",
            "WebhookReplyNode",
            {
                "replyIdPath": "data.replyId",
                "responseCodeTemplate": "400",
                "bodyTemplateType": "string",
                "bodyTemplate": "{{#each working.errors}}{{field}}: {{message}}{{/each}}",
            },
        ),
    ],
)
