"""The workflows of the demo, in the format of exported ones."""

from __future__ import annotations

from typing import Final

from trunkline.bench.demo_incident import STANDBY
from trunkline.bench.session import Json

BUTTON: Final = "press"
"""The id of the button that starts the standby compressor."""

FLOW: Final[Json] = {
    "name": "start the standby compressor",
    "description": f"Switches {STANDBY} on when somebody presses the button.",
    "triggers": [
        {
            "type": "virtualButton",
            "key": BUTTON,
            "meta": {
                "category": "trigger",
                "name": "virtualButton",
                "label": "Start the standby",
                "id": BUTTON,
                "x": 40,
                "y": 20,
            },
            "outputIds": [["command"]],
        }
    ],
    "nodes": [
        {
            "id": "command",
            "type": "DeviceSendCommandNode",
            "config": {
                "deviceQueryJsonTemplate": f'{{"name": "{STANDBY}"}}',
                "nameTemplate": "switch",
                "payloadTemplate": '{"on": true}',
                "payloadTemplateType": "json",
            },
            "meta": {
                "category": "output",
                "name": "device-command",
                "label": "Switch it on",
                "x": 40,
                "y": 120,
            },
            "outputIds": [],
        }
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
            {
                "id": "row",
                "type": "DataTableInsertRowNode",
                "config": {
                    "dataTableIdTemplate": table,
                    "dataMethod": "individualFields",
                    "rowFields": [
                        {"columnTemplate": column, "valueTemplate": value} for column, value in fields.items()
                    ],
                },
                "meta": {
                    "category": "data",
                    "name": "table-insert-row",
                    "label": "Add a row",
                    "x": 40,
                    "y": 120,
                },
                "outputIds": [],
            }
        ],
    }


EDGE_FLOW: Final[Json] = {"name": "keep readings while the line is down", "flowClass": "edge"}
EMBEDDED_FLOW: Final[Json] = {"name": "heat the wind wheel when it freezes", "flowClass": "embedded"}
