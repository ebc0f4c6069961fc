"""The workflows of the demo, in the format of exported ones."""

from __future__ import annotations

from trunkline.bench.session import Json

FLOW: Json = {
    "name": "cool the greenhouse",
    "description": "Sets a lower target for the greenhouse when somebody presses the button.",
    "triggers": [
        {
            "type": "virtualButton",
            "key": "press",
            "meta": {"category": "trigger", "name": "virtualButton", "label": "Cool", "id": "press"},
            "outputIds": [["command"]],
        }
    ],
    "nodes": [
        {
            "id": "command",
            "type": "DeviceSendCommandNode",
            "config": {
                "deviceQueryJsonTemplate": '{"name": "greenhouse-north"}',
                "nameTemplate": "setTarget",
                "payloadTemplate": '{"value": 18}',
                "payloadTemplateType": "json",
            },
            "meta": {"category": "output", "name": "device-command", "label": "Set the target"},
            "outputIds": [],
        }
    ],
}
FLOW_VERSION: Json = {"version": "v1", "notes": "The first one.", "nodes": FLOW["nodes"]}
WATCH_FLOW: Json = {
    "name": "watch the cold store",
    "description": "Makes an event when the cold store is too warm, and fails without a temperature.",
    "triggers": [
        {
            "type": "virtualButton",
            "key": "reading",
            "meta": {"category": "trigger", "name": "virtualButton", "label": "Reading", "id": "reading"},
            "outputIds": [["has"]],
        },
        {
            "type": "timer",
            "key": "minute",
            "config": {"seconds": 60},
            "meta": {"category": "trigger", "name": "timer", "label": "Each minute", "id": "minute"},
            "outputIds": [["look"]],
        },
    ],
    "nodes": [
        {
            "id": "look",
            "type": "DebugNode",
            "config": {"message": "The cold store is watched."},
            "meta": {"category": "output", "name": "debug", "label": "Say so"},
            "outputIds": [],
        },
        {
            "id": "has",
            "type": "ConditionalNode",
            "config": {"expression": "{{data.temperature}} !== undefined"},
            "meta": {"category": "logic", "name": "conditional", "label": "Is there a temperature?"},
            "outputIds": [["missing"], ["warm"]],
        },
        {
            "id": "missing",
            "type": "ThrowErrorNode",
            "config": {"messageTemplate": "The reading has no temperature."},
            "meta": {"category": "output", "name": "throw-error", "label": "Fail"},
            "outputIds": [],
        },
        {
            "id": "warm",
            "type": "ConditionalNode",
            "config": {"expression": "{{data.temperature}} > 8"},
            "meta": {"category": "logic", "name": "conditional", "label": "Is it too warm?"},
            "outputIds": [["fine"], ["event"]],
        },
        {
            "id": "fine",
            "type": "DebugNode",
            "config": {"message": "The cold store is cold enough."},
            "meta": {"category": "output", "name": "debug", "label": "Cold enough"},
            "outputIds": [],
        },
        {
            "id": "event",
            "type": "CreateEventNode",
            "config": {
                "levelTemplate": "warning",
                "subjectTemplate": "Cold store: {{data.temperature}} degrees",
            },
            "meta": {"category": "output", "name": "create-event", "label": "Make an event"},
            "outputIds": [],
        },
    ],
}
EDGE_FLOW: Json = {"name": "count visitors", "flowClass": "edge"}
EMBEDDED_FLOW: Json = {"name": "blink", "flowClass": "embedded"}
