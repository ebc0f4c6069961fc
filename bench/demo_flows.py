"""The workflows of the demo, in the format of exported ones."""

from __future__ import annotations

from typing import Final

from trunkline.bench.demo_incident import STANDBY
from trunkline.bench.session import Json

BUTTON: Final = "press"
"""The id of the button that starts the standby compressor."""


def _part(id: str, type: str, category: str, label: str, place: tuple[int, int], config: Json) -> Json:
    """A node at a place of the drawing; nothing follows it."""
    meta = {"category": category, "label": label, "x": place[0], "y": place[1]}
    return {"id": id, "type": type, "config": config, "meta": meta, "outputIds": []}


FLOW: Final[Json] = {
    "name": "start the standby compressor",
    "description": f"Switches {STANDBY} on when somebody presses the button, unless it runs already.",
    "triggers": [
        {
            "type": "virtualButton",
            "key": BUTTON,
            "meta": {
                "category": "trigger",
                "name": "virtualButton",
                "label": "Start the standby",
                "id": BUTTON,
                "x": 140,
                "y": 20,
            },
            "outputIds": [["look"]],
        }
    ],
    "nodes": [
        _part(
            "look",
            "GetDeviceNode",
            "data",
            "Find the standby",
            (140, 120),
            {
                "findMethod": "name",
                "idTemplate": STANDBY,
                "includeState": True,
                "attributes": ["running"],
                "resultPath": "working.standby",
            },
        )
        | {"outputIds": [["stands"]]},
        _part(
            "stands",
            "ConditionalNode",
            "logic",
            "Does it stand still?",
            (140, 220),
            {"expression": "{{working.standby.compositeState.running.value}} !== true"},
        )
        | {"outputIds": [["runs"], ["command"]]},
        _part(
            "runs",
            "DebugNode",
            "output",
            "It runs already",
            (20, 320),
            {"message": f"{STANDBY} runs already."},
        ),
        _part(
            "command",
            "DeviceSendCommandNode",
            "output",
            "Switch it on",
            (260, 320),
            {
                "deviceQueryJsonTemplate": f'{{"name": "{STANDBY}"}}',
                "nameTemplate": "switch",
                "payloadTemplate": '{"on": true}',
                "payloadTemplateType": "json",
            },
        ),
    ],
}
FLOW_VERSION: Final[Json] = {"version": "v1", "notes": "The first one.", "nodes": FLOW["nodes"]}

LOG_TABLE: Final[Json] = {
    "name": "alarm log",
    "description": "Each alarm, as the workflow `log of alarms` has noted it.",
    "columns": [
        {"name": "opened", "dataType": "string", "constraint": "required"},
        {"name": "level", "dataType": "string", "constraint": "required"},
        {"name": "subject", "dataType": "string", "constraint": "required"},
    ],
}


def log_flow(table: str) -> Json:
    """The workflow that notes each new event of the levels error and critical in a data table."""
    fields = {"opened": "{{data.creationDate}}", "level": "{{data.level}}", "subject": "{{data.subject}}"}
    return {
        "name": "log of alarms",
        "description": "Notes each alarm in a data table, for the weekly meeting.",
        "triggers": [
            {
                "type": "event",
                "key": level,
                "config": {"new": True, "acknowledged": False, "resolved": False},
                "meta": {"category": "trigger", "name": "event", "label": f"{level} event", "x": x, "y": 20},
                "outputIds": [["row"]],
            }
            for x, level in ((40, "critical"), (260, "error"))
        ],
        "nodes": [
            _part(
                "row",
                "DataTableInsertRowNode",
                "data",
                "Add a row",
                (140, 120),
                {
                    "dataTableIdTemplate": table,
                    "dataMethod": "individualFields",
                    "rowFields": [
                        {"columnTemplate": column, "valueTemplate": value} for column, value in fields.items()
                    ],
                },
            )
        ],
    }


EDGE_FLOW: Final[Json] = {"name": "keep readings while the line is down", "flowClass": "edge"}
EMBEDDED_FLOW: Final[Json] = {"name": "heat the wind wheel when it freezes", "flowClass": "embedded"}
