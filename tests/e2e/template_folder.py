"""A small template folder that has something of every kind."""

from __future__ import annotations

import io
import zipfile

PLACE = "~exportplaceholderid-{}~"
CALL = "https://~exportplaceholderid-triggers-url~/webhooks/~exportplaceholderid-webhookToken-weather~"

FOLDER = {
    "application.yaml": f"""
resourceType: Application
version: 1
resources:
  - id: ~exportplaceholderid-application-greenhouse~
    name: Greenhouse
    description: Beds that are watered
    blobUrlTTL: 3600
    endpointDefaultCors: true
    readmePath: ./README.md
    imagePath: ./preview.png
    keywords: []
    globals:
      - {{key: limit, json: '30'}}
      - {{key: main, json: '"~exportplaceholderid-device-main~"'}}
      - {{key: call, json: '"{CALL}"'}}
""",
    "README.md": (
        "# Greenhouse\n\nBed ~exportplaceholderid-device-bed~.\n"
        "See https://~exportplaceholderid-docs-url~/beds and https://~exportplaceholderid-api-url~/applications.\n"
        "Or wss://~exportplaceholderid-triggers-url~/webhooks/~exportplaceholderid-webhookToken-weather~.\n"
    ),
    "preview.png": "no picture",
    "devices.yaml": """
resourceType: DeviceTree
version: 1
resources:
  - id: ~exportplaceholderid-device-sensor~
    name: Sensor
    deviceClass: peripheral
    gatewayId: ~exportplaceholderid-device-gate~
    attributes: []
    tags: [{key: bed, value: ~exportplaceholderid-device-bed~}]
    children: []
  - id: ~exportplaceholderid-device-main~
    name: Main
    deviceClass: system
    exportHash: abc
    attributes: []
    tags: []
    children:
      - id: ~exportplaceholderid-device-bed~
        name: Bed
        description: https://~exportplaceholderid-files-domain~/~exportplaceholderid-application-greenhouse~/logo.svg
        deviceClass: standalone
        attributes:
          - {name: moisture, dataType: number, attributeTags: {}}
        tags: [{key: since, value: 2024-05-01}, {key: 'on', value: yes}]
        children: []
      - id: ~exportplaceholderid-device-gate~
        name: Gate
        deviceClass: gateway
        attributes: []
        tags: []
        children: []
""",
    "deviceRecipes.yaml": """
resourceType: DeviceRecipe
version: 1
resources:
  - {id: ~exportplaceholderid-deviceRecipe-bed~, name: Bed, deviceName: Bed N, deviceClass: standalone,
     attributes: [{name: moisture, dataType: number}], tags: [{key: kind, value: bed}]}
""",
    "dataTables/Plants.yaml": """
resourceType: DataTable
version: 1
resources:
  - id: ~exportplaceholderid-dataTable-plants~
    name: Plants
    localFilename: ./Plants.csv
    columns:
      - {name: name, dataType: string, constraint: unique}
      - {name: note, dataType: string, constraint: optional}
      - {name: litres, dataType: number, constraint: optional}
      - {name: hardy, dataType: boolean, constraint: optional}
      - {name: bed, dataType: string, constraint: optional}
""",
    "dataTables/Plants.csv": (
        "id,name,note,litres,hardy,bed\r\n"
        '65df9425748add1616e28f82,Tomato,"red, \nround",1.5,false,~exportplaceholderid-device-bed~\r\n'
        "65df9425748add1616e28f83,Kale,,2,true,\r\n"
    ),
    "workflows/cloud/Water.yaml": f"""
resourceType: Flow
version: 1
resources:
  - id: ~exportplaceholderid-flow-water~
    name: Water
    flowClass: cloud
    defaultVersionId: ~exportplaceholderid-flowVersion-water1~
    globals: [{{key: k, json: '1'}}]
    triggers:
      - {{type: deviceId, key: ~exportplaceholderid-device-bed~, config: {{}}, meta: {{uiId: t}}, outputIds: [[n]]}}
    nodes:
      - {{id: n, type: DebugNode, config: {{message: "~exportplaceholderid-webhook-weather~"}}, meta: {{}},
         outputIds: [[h]]}}
      - {{id: h, type: HTTPNode, config: {{method: POST, uriTemplate: "{CALL}?bed=1"}}, meta: {{}}, outputIds: []}}
""",
    "workflows/cloud/Water_v1.yaml": """
resourceType: FlowVersion
version: 1
resources:
  - id: ~exportplaceholderid-flowVersion-water1~
    flowId: ~exportplaceholderid-flow-water~
    version: v1
    notes: The first
    triggers: []
    nodes: []
    globals: []
""",
    "webhooks.yaml": """
resourceType: Webhook
version: 1
resources:
  - {id: ~exportplaceholderid-webhook-weather~, name: Weather, token: ~exportplaceholderid-webhookToken-weather~,
     responseCode: 201, verificationType: none, waitForReply: false}
""",
    "integrations.yaml": """
resourceType: Integration
version: 1
resources:
  - {id: ~exportplaceholderid-integration-broker~, name: Broker, integrationType: mqtt, enabled: false,
     topics: [a/b], mqttConfig: {host: broker.example.com, port: 8883, protocol: mqtts}}
""",
    "experience/domains.yaml": """
resourceType: ExperienceDomain
version: 1
resources:
  - {id: ~exportplaceholderid-experienceDomain-own~, domainName: garden.example.com}
""",
    "experience/groups.yaml": """
resourceType: ExperienceGroupTree
version: 1
resources:
  - id: ~exportplaceholderid-experienceGroup-all~
    name: All
    deviceQueryJson: '{"$nor":[]}'
    children:
      - {id: ~exportplaceholderid-experienceGroup-beds~, name: Beds, groupTags: {},
         deviceIds: [~exportplaceholderid-device-bed~], deviceTags: [], children: []}
""",
    "experience/users.yaml": """
resourceType: ExperienceUser
version: 1
resources:
  - {id: ~exportplaceholderid-experienceUser-a~, email: a@example.com, firstName: A,
     experienceGroupIds: [~exportplaceholderid-experienceGroup-beds~], userTags: {}}
  - {id: ~exportplaceholderid-experienceUser-b~, email: b@example.com, password: Greenhouse-9}
""",
    "experience/develop/version.yaml": """
resourceType: ExperienceVersion
version: 1
resources:
  - {id: ~exportplaceholderid-experienceVersion-develop~, version: develop, endpointDefaultCors: true,
     globals: [{key: title, json: '"Beds"'}]}
""",
    "experience/develop/endpoints.yaml": """
resourceType: ExperienceEndpoint
version: 1
resources:
  - {id: ~exportplaceholderid-experienceEndpoint-home~, method: get, route: /, access: group, enabled: true,
     version: develop, endpointTags: {}, experienceGroupIds: [~exportplaceholderid-experienceGroup-beds~],
     staticReply: {type: page, value: ~exportplaceholderid-experienceView-home~}}
""",
    "experience/develop/pages/pages.yaml": """
resourceType: ExperienceView
version: 1
resources:
  - {id: ~exportplaceholderid-experienceView-home~, name: home, viewType: page, version: develop, viewTags: {},
     layoutId: ~exportplaceholderid-experienceView-around~, localFilename: ./home.hbs}
""",
    "experience/develop/pages/home.hbs": "<b>{{globals.title}}</b> ~exportplaceholderid-device-bed~",
    "experience/develop/layouts/layouts.yaml": """
resourceType: ExperienceView
version: 1
resources:
  - {id: ~exportplaceholderid-experienceView-around~, name: around, viewType: layout, version: develop,
     localFilename: ./around.hbs}
""",
    "experience/develop/layouts/around.hbs": "<main>{{page}}</main>",
    "experience/develop/workflows/Home.yaml": """
resourceType: ExperienceFlowVersion
version: 1
resources:
  - {id: ~exportplaceholderid-flowVersion-home~, flowId: ~exportplaceholderid-flow-home~, name: Home, enabled: true,
     version: develop, globals: [], nodes: [],
     triggers: [{type: endpoint, key: ~exportplaceholderid-experienceEndpoint-home~, config: {}, outputIds: [[]]}]}
""",
    "experience/v1/version.yaml": """
resourceType: ExperienceVersion
version: 1
resources:
  - {id: ~exportplaceholderid-experienceVersion-v1~, version: v1, description: Out,
     domainIds: [~exportplaceholderid-experienceDomain-own~]}
""",
    "experience/v1/views.yaml": """
resourceType: ExperienceView
version: 1
resources:
  - {id: ~exportplaceholderid-experienceView-old~, name: old, viewType: page, version: v1, localFilename: ./old.hbs}
""",
    "experience/v1/old.hbs": "old",
    "experience/v1/endpoints.yaml": """
resourceType: ExperienceEndpoint
version: 1
resources:
  - {id: ~exportplaceholderid-experienceEndpoint-old~, method: get, route: /old, access: public, version: v1,
     staticReply: {type: page, value: ~exportplaceholderid-experienceView-old~}}
""",
    "dashboards/Beds.yaml": """
resourceType: Dashboard
version: 1
resources:
  - id: ~exportplaceholderid-dashboard-beds~
    name: Beds
    isPasswordProtected: true
    public: true
    refreshRate: 60
    blocks:
      - {id: b, blockType: device-count, applicationId: ~exportplaceholderid-application-greenhouse~, width: 2,
         height: 1, startX: 0, startY: 0, title: Beds, config: {segments: [{id: all, query: '{"$or": []}'}]}}
""",
    "notebooks/Count.yaml": """
resourceType: Notebook
version: 1
resources:
  - {id: ~exportplaceholderid-notebook-count~, name: Count, localFilename: ./Count.ipynb, inputs: [], outputs: []}
""",
    "notebooks/Count.ipynb": '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "files/logo.svg": "<svg/>",
    "files/css/deep/garden.css": "a { color: green }",
    "files/compose.yaml": "services: [a]",
    "index.yaml": "title: nothing of an application",
    ".git/config.yaml": "{{{",
}


def zipped(folder: dict[str, str], below: str = "") -> bytes:
    """The folder as a zip that has entries for directories, too."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        if below:
            archive.writestr(below, b"")
        for path, text in folder.items():
            archive.writestr(below + path, text)
    return file.getvalue()
