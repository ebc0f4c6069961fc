"""Exports as YAML become the body of an import: ids for placeholders, workflows and their versions."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.workflows.flows.yaml_exports import read_exports

ALARM = """\
resourceType: Flow
resources:
  - description: ''
    flowClass: cloud
    globals:
      - json: '4'
        key: most
    id: ~exportplaceholderid-flow-pumpAlarm~
    name: Pump alarm
    nodes:
      - config:
          expression: >-
            {{data.pressure}} > {{globals.most}}
            && true
        id: RsqCOj
        meta: {label: yes, x: 280, 'y': -4.5, since: 2024-01-02, at: 12:30, hex: 0x10, none: ~, left: }
        outputIds:
          - []
          - - tell
        type: ConditionalNode
      - config:
          triggerWorkflowId: ~exportplaceholderid-flow-pumpAlarm~
          deviceId: ~exportplaceholderid-device-pump~
          text: "{{a}} ~exportplaceholderid-device-pump~ 1e3"
        id: tell
        type: DebugNode
    triggers:
      - config: {}
        key: ~exportplaceholderid-flow-pumpAlarm~-NfV48s
        meta: {uiId: qaX}
        outputIds:
          - - RsqCOj
        type: virtualButton
version: 1
"""
VERSIONS = """\
resourceType: ExperienceFlowVersion
resources:
  - {flowId: ~exportplaceholderid-flow-home~, id: ~exportplaceholderid-flowVersion-home~, name: GET /, enabled: true,
     version: develop, triggers: [{type: endpoint, key: ~exportplaceholderid-experienceEndpoint-home~}]}
  - {flowId: ~exportplaceholderid-flow-old~, id: ~exportplaceholderid-flowVersion-old~, name: GET /old, enabled: true,
     version: v1, notes: "first"}
version: 1
---
resourceType: FlowVersion
resources:
  - {flowId: ~exportplaceholderid-flow-pumpAlarm~, flowClass: cloud, version: v2}
version: 1
"""


def read(*texts: str, **ids: str) -> Any:
    return read_exports(
        {f"{number}.yaml": text.encode("latin1") for number, text in enumerate(texts)},
        {f"~exportplaceholderid-{name.replace('_', '-')}~": id for name, id in ids.items()},
    )


def test_a_workflow_is_read_as_plain_data_with_ids_for_placeholders() -> None:
    body, left = read(ALARM)
    (flow,) = body["flows"]
    id = flow["id"]
    assert len(bytes.fromhex(id)) == 12
    assert (flow["name"], flow["enabled"], body["flowVersions"]) == ("Pump alarm", False, [])
    assert flow["triggers"][0]["key"] == f"{id}-NfV48s"
    condition, debug = flow["nodes"]
    assert condition["config"]["expression"] == "{{data.pressure}} > {{globals.most}} && true"
    assert condition["meta"] == {
        "label": "yes",
        "x": 280,
        "y": -4.5,
        "since": "2024-01-02",
        "at": "12:30",
        "hex": "0x10",
        "none": None,
        "left": None,
    }
    assert condition["outputIds"] == [[], ["tell"]]
    assert flow["globals"] == [{"json": "4", "key": "most"}]
    assert debug["config"]["triggerWorkflowId"] == id
    assert left == {"~exportplaceholderid-device-pump~": 2}


def test_ids_may_be_given_for_what_is_there() -> None:
    body, left = read(ALARM, device_pump="b" * 24)
    config = body["flows"][0]["nodes"][1]["config"]
    assert (config["deviceId"], config["text"]) == ("b" * 24, f"{{{{a}}}} {'b' * 24} 1e3")
    assert not left


def test_versions_belong_to_their_workflows() -> None:
    body, left = read(ALARM, VERSIONS)
    alarm, home, old = body["flows"]
    first, second = body["flowVersions"]
    assert home["triggers"][0]["type"] == "endpoint"
    assert {"name": "GET /", "enabled": True, "flowClass": "experience"}.items() <= home.items()
    assert "version" not in home
    assert old == {"id": old["id"], "name": "GET /old", "enabled": True, "flowClass": "experience"}
    assert (first["flowId"], first["version"], second["flowId"]) == (old["id"], "v1", alarm["id"])
    assert len({alarm["id"], home["id"], old["id"], first["id"]}) == 4
    assert left["~exportplaceholderid-experienceEndpoint-home~"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "0.yaml: is not valid YAML at line 1: "),
        (
            "a: !!python/object/apply:os.system [x]",
            "0.yaml: is not valid YAML at line 1: could not determine a constructor",
        ),
        ("[" * 5_000, "0.yaml: is not valid YAML"),
        ("\xff", "0.yaml: is not valid YAML: "),
        ("- 1", "0.yaml: is not a valid export; it has resourceType"),
        ("{resources: [], version: 1}", "0.yaml: resourceType: is missing; give Flow,"),
        (
            "{resourceType: Device, resources: [], version: 1}",
            "0.yaml: resourceType: is 'Device'; give Flow,",
        ),
        ("{resourceType: Flow, resources: [], version: 2}", "0.yaml: version: is 2;"),
        (
            "{resourceType: Flow, resources: [1], version: 1}",
            "0.yaml: resources: has something that is not an object.",
        ),
        ("{resourceType: Flow, resources: [{name: a}], version: 1}", "0.yaml: resources: 'a' has no id."),
        (
            "{resourceType: FlowVersion, resources: [{version: v}], version: 1}",
            "0.yaml: resources: None has no flowId.",
        ),
    ],
)
def test_what_is_no_export_is_told(text: str, message: str) -> None:
    with pytest.raises(Invalid) as refusal:
        read(text)
    assert refusal.value.message.startswith(message)


def test_references_that_make_billions_of_values_are_refused() -> None:
    lines = ["a0: &a0 [1,1,1,1,1,1,1,1,1,1]"]
    lines += [f"a{at}: &a{at} [{','.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 12)]
    bomb = "resourceType: Flow\nversion: 1\nresources:\n- id: x\n" + "".join(f"  {line}\n" for line in lines)
    with pytest.raises(Invalid, match="more than 1000000 values"):
        read(bomb)
