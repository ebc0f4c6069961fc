"""Examples for the OpenAPI document: for each operation what has to be given, and nothing that may be left out.

`serve --demo` creates the records that they name (`bench/demo_records.py`), and the document of that server has their
ids in place of those in `IDS` (`site.py`). A test checks each example against the type of its operation and
then runs them all against a demo. Passwords, secrets and links have no example that works: a document that anyone
may read contains none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from trunkline.http.calls.route import Route

IDS: Final[Mapping[str, str]] = {
    "applicationId": "6920c0de0000000000000001",
    "deviceId": "6920c0de0000000000000002",
    "dataTableId": "6920c0de0000000000000003",
    "rowId": "6920c0de0000000000000004",
    "eventId": "6920c0de0000000000000005",
    "applicationKeyId": "6920c0de0000000000000006",
    "applicationApiTokenId": "6920c0de0000000000000007",
    "userApiTokenId": "6920c0de0000000000000008",
    "dashboardId": "6920c0de0000000000000009",
    "deviceRecipeId": "6920c0de000000000000000a",
    "webhookId": "6920c0de000000000000000b",
    "jobId": "6920c0de000000000000000c",
    # Workflows.
    "flowId": "6920c0de0000000000000010",
    "flowVersionId": "6920c0de0000000000000011",
    "runId": "00000650de11000000000001",
    # Deployments.
    "edgeDeploymentId": "6920c0de0000000000000012",
    "embeddedDeploymentId": "6920c0de0000000000000013",
    "edgeDeviceId": "6920c0de0000000000000014",
    "edgeFlowId": "6920c0de0000000000000015",
    "embeddedDeviceId": "6920c0de0000000000000016",
    "embeddedFlowId": "6920c0de0000000000000017",
    # Experience.
    "experienceEndpointId": "6920c0de0000000000000020",
    "experienceGroupId": "6920c0de0000000000000021",
    "experienceUserId": "6920c0de0000000000000022",
    "experienceViewId": "6920c0de0000000000000023",
    "experienceDomainId": "6920c0de0000000000000025",
    "experienceSlugId": "6920c0de0000000000000026",
    "experienceVersionIdOrName": "6920c0de0000000000000024",
    # Credentials and integrations.
    "credentialId": "6920c0de0000000000000030",
    "integrationId": "6920c0de0000000000000031",
    # Certificates.
    "applicationCertificateId": "6920c0de0000000000000080",
    "applicationCertificateAuthorityId": "6920c0de0000000000000081",
    # Application templates.
    "templateId": "692180000000000000000001",
    # Bulk changes of devices, and recipes.
    # Organizations and the audit log.
    "orgId": "6920c0de0000000000000050",
    "userId": "6920c0de0000000000000051",
    "auditLogId": "6920c0de0000000000000090",
    "userAuditLogId": "6920c0de0000000000000091",
    "inviteId": "6920c0de0000000000000052",
    # Reports of dashboards.
    "userDashboardId": "6920c0de0000000000000060",
    # Notebooks and resource jobs.
    "notebookId": "6920c0de0000000000000100",
    "resourceJobId": "6920c0de0000000000000101",
    # Files.
    "privateFileId": "6920c0de00000000000000b0",
    "fileId": "6920c0de00000000000000b1",
}
"""Ids of no record, one for each kind whose id others of these examples contain, or that was there before `id_of`."""

QUERIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "auth.ssoDomain": {"email": "admin@localhost"},
    "application.search": {"filter": "chiller"},
    "application.mqttSubscriptionStream": {"topic": "barn/#"},
    "dataTable.removeColumn": {"columnName": "note"},
    "me.fetchRecentItems": {"itemType": "device"},
    "auth.verifyEmailPage": {"token": "TOKEN"},
    "auth.verifyEmail": {"token": "TOKEN"},
    "devices.tagValues": {"key": "area"},
    "downloads.get": {"token": "TOKEN"},
    "contents.get": {"token": "TOKEN"},
    # Workflows.
    "flows.getByVersion": {"version": "v1"},
    # Deployments.
    # Certificates.
    # Application templates.
    # Bulk changes of devices, and recipes.
    # Organizations and the audit log.
    "org.removeMember": {"userId": IDS["userId"]},
    "org.revokeInvite": {"inviteId": IDS["inviteId"]},
    "orgInvites.get": {"token": "TOKEN", "email": "colleague@example.com"},
    # Reports of dashboards.
    # Notebooks and resource jobs.
    "notebook.cancelExecution": {"executionId": "6920c0de0000000000000102"},
    "resourceJob.cancelExecution": {"executionId": "6920c0de0000000000000102"},
    # Archives.
    "application.archiveData": {"date": -40 * 86_400_000},
}
"""The parameters of the query that an operation needs."""

_TEMPERATURES: Final = {"deviceIds": [IDS["deviceId"]], "attributes": ["temperature"]}
_BLOCK: Final = {"blockType": "graph", "startX": 0, "startY": 0, "width": 4, "height": 3, "title": "Power"}

_CERTIFICATE: Final = (
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBNTCB26ADAgECAhQ/BZb6MsiF7C5zPGt5PsLv3b9JvzAKBggqhkjOPQQDAjAP\n"
    "MQ0wCwYDVQQDDARiYXJuMCAXDTI2MDEwMTAwMDAwMFoYDzIxMjYwMTAxMDAwMDAw\n"
    "WjAPMQ0wCwYDVQQDDARiYXJuMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEG6d/\n"
    "gzjpKItjL1J8rqC+Dayu1BUUBr9fKYJNqdQEx2TGxBhE4F0XHrlns05TazOSeM4A\n"
    "g5DKb3ekOmz8bIucsKMTMBEwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJ\n"
    "ADBGAiEArqywVewo8ryZYiaqwQ3uyqfbzpI2lwOebiJOaOc1thwCIQDRQZJbcB36\n"
    "o/kFE15FiZke5Ce/MsNuN/a62Dh/uT+WzQ==\n"
    "-----END CERTIFICATE-----\n"
)
"""A certificate that signed itself, as an authority does; nobody has its key."""

BODIES: Final[Mapping[str, Any]] = {
    "auth.authenticateUser": {"email": "admin@localhost", "password": "PASSWORD"},
    "auth.authenticateDevice": {"deviceId": IDS["deviceId"], "key": "KEY", "secret": "SECRET"},
    "me.patch": {"companyName": "A farm"},
    "me.changePassword": {"password": "PASSWORD", "newPassword": "A-new-password-1"},
    "me.addRecentItem": {
        "itemType": "device",
        "parentId": IDS["applicationId"],
        "itemId": IDS["deviceId"],
    },
    "me.transferResources": {
        "destinationId": IDS["orgId"],
        "destinationType": "organization",
        "dashboardIds": [IDS["dashboardId"]],
    },
    "me.delete": {"email": "admin@localhost", "password": "PASSWORD"},
    "userApiTokens.post": {"name": "read only", "scope": ["all.User.read"]},
    "userApiToken.patch": {"description": "For looking at."},
    "applications.post": {"name": "My first application"},
    "application.patch": {"description": "A cold-storage plant with 24 devices."},
    "application.globals": [{"key": "target", "json": "4"}],
    "application.readmePatch": {"content": "# A cold-storage plant"},
    "applicationKeys.post": {"name": "key of the chiller", "deviceIds": [IDS["deviceId"]]},
    "applicationKey.patch": {"description": "For all devices of the plant."},
    "applicationApiTokens.post": {"name": "read only", "scope": ["all.Application.read"]},
    "applicationApiToken.patch": {"description": "For looking at."},
    "devices.post": {
        "name": "thermometer",
        "attributes": [{"name": "temperature", "dataType": "number"}],
        "tags": [{"key": "room", "value": "kitchen"}],
    },
    "device.patch": {"description": "Milk and cheese, beside the loading dock."},
    "device.sendState": {"data": {"temperature": 4.2, "cooling": True}},
    "device.sendCommand": {"name": "setTarget", "payload": {"value": 3}},
    "devices.sendCommand": {
        "name": "switch",
        "payload": {"on": True},
        "deviceTags": [{"key": "area", "value": "chillers"}],
    },
    "device.setConnectionStatus": {"status": "connected"},
    "deviceAttributes.post": {"name": "soilMoisture", "dataType": "number"},
    "deviceAttribute.patch": {"description": "Degrees Celsius."},
    "data.timeSeriesQuery": {
        **_TEMPERATURES,
        "duration": 600000,
        "resolution": 60000,
        "aggregation": "MEAN",
    },
    "data.lastValueQuery": {"deviceIds": [IDS["deviceId"]], "attribute": "temperature"},
    "device.export": {"attributes": ["temperature", "humidity"]},
    "devices.export": {"format": "csv"},
    "data.export": {"deviceIds": [IDS["deviceId"]]},
    # Bundles.
    "application.export": {"includeDevices": True, "includeDataTableRows": True},
    "applications.import": {"includeDevices": "true"},
    "application.import": {"options": '{"conflictBehavior": "retain"}'},
    "dataTables.post": {
        "name": "spare parts",
        "columns": [
            {"name": "number", "dataType": "string", "constraint": "unique"},
            {"name": "pieces", "dataType": "number", "constraint": "required", "defaultValue": 0},
        ],
    },
    "dataTable.patch": {"description": "One row for each inspection."},
    "dataTable.addColumn": {"name": "inspector", "dataType": "string", "constraint": "optional"},
    "dataTableRows.post": {"place": "weather mast", "score": 6},
    "dataTableRow.patch": {"score": 9},
    "dataTableRows.query": {"score": {"$gte": 8}},
    "dataTableRows.delete": {"place": "weather mast"},
    "dataTableRows.export": {"query": {"score": {"$gte": 8}}},
    "events.post": {"subject": "The filter is dirty", "level": "info", "deviceId": IDS["deviceId"]},
    "event.patch": {"state": "acknowledged", "comment": "I am on my way."},
    "events.patch": {"state": "acknowledged"},
    "events.delete": {"level": "info"},
    "events.export": {"format": "json"},
    "applicationDashboards.post": {"name": "power", "blocks": [_BLOCK]},
    "applicationDashboard.patch": {"refreshRate": 60},
    # Workflows.
    "flows.post": {
        "name": "night watch",
        "triggers": [
            {"type": "timer", "key": "every-minute", "config": {"seconds": 60}, "outputIds": [["look"]]}
        ],
        "nodes": [
            {"type": "DebugNode", "id": "look", "config": {"message": "All is quiet.", "level": "info"}}
        ],
    },
    "flow.patch": {"description": "Looks after the farm at night."},
    "flow.setStorageEntry": {"key": "last visit", "value": {"by": "Ada", "score": 8}},
    "flowRun.replay": {"flowVersion": "develop"},
    "flowRuns.replay": {"since": "2026-11-21T12:00:00.000Z"},
    "flow.test": {"data": {"temperature": 31}},
    "application.mqttPublishMessage": {"topic": "barn/door", "message": "open"},
    "flow.pressVirtualButton": {"key": f"{IDS['flowId']}-press"},
    "flows.import": {
        "flows": [{"id": IDS["flowId"], "name": "imported"}],
        "flowVersions": [{"flowId": IDS["flowId"], "version": "v1"}],
    },
    "flowVersions.post": {"version": "v2", "notes": "As it was before the summer."},
    "flowVersions.delete": {"query": {"version": "v2"}},
    "flowVersion.patch": {"notes": "As it was in spring."},
    # Deployments.
    "edgeDeployments.release": {
        "flowId": IDS["edgeFlowId"],
        "version": "develop",
        "deviceIds": [IDS["edgeDeviceId"]],
    },
    "edgeDeployments.replace": {
        "flowId": IDS["edgeFlowId"],
        "oldVersion": "v0",
        "newVersion": "develop",
    },
    "edgeDeployments.remove": {"flowId": None, "deviceId": IDS["edgeDeviceId"]},
    "embeddedDeployments.release": {
        "flowId": IDS["embeddedFlowId"],
        "version": "develop",
        "deviceIds": [IDS["embeddedDeviceId"]],
    },
    "embeddedDeployments.replace": {
        "flowId": IDS["embeddedFlowId"],
        "oldVersion": "v0",
        "newVersion": "develop",
    },
    "embeddedDeployments.remove": {"flowId": IDS["embeddedFlowId"], "deviceId": None},
    "embeddedDeployments.export": {"deviceId": IDS["embeddedDeviceId"]},
    # Experience.
    "experience.bootstrap": {"createUsers": False},
    "experienceEndpoints.post": {"route": "/devices/{id}", "method": "get", "access": "authenticated"},
    "experienceEndpoint.patch": {"description": "The page of one device."},
    "experienceViews.post": {"name": "devices", "viewType": "page", "body": "<h1>Devices</h1>"},
    "experienceView.patch": {"description": "What everybody sees first."},
    "experienceVersions.post": {"version": "v1.1", "description": "With a page for each device."},
    "experienceVersion.patch": {"description": "What the farmers use."},
    "experienceDomains.post": {"domainName": "www.farm.example"},
    "experienceDomain.patch": {"version": "develop"},
    "experienceSlugs.post": {"slug": "farm-of-eva"},
    "experienceSlug.patch": {"version": "develop"},
    "experienceGroups.post": {"name": "gardeners", "deviceIds": [IDS["deviceId"]]},
    "experienceGroup.patch": {"description": "Whoever works on the farm."},
    "experienceUsers.post": {"email": "gardener@example.com", "password": "PASSWORD"},
    "experienceUser.patch": {"firstName": "Anna"},
    # Credentials and integrations.
    # Certificates.
    "applicationCertificates.post": {"certificate": _CERTIFICATE, "description": "Of the barn."},
    "applicationCertificate.patch": {"description": "For all devices of the farm."},
    "applicationCertificateAuthorities.post": {"name": "farm", "caBundle": _CERTIFICATE},
    "applicationCertificateAuthority.patch": {"description": "Issues the certificates of the farm."},
    # Application templates.
    # Bulk changes of devices, and recipes.
    "devices.patch": {
        "query": {"name": "thermometer"},
        "updateFields": {"description": "On the kitchen wall."},
        "updateOperations": [{"operation": "set", "target": "tag", "value": {"key": "floor", "value": "1"}}],
    },
    "devices.delete": {"query": {"name": "thermometer"}},
    "devices.restore": {"query": {"name": "thermometer"}},
    "deviceRecipe.bulkCreate": {
        "nameColumn": "name",
        "csv": "name,room\r\nthermometer 1,kitchen\r\nthermometer 2,hall\r\n",
    },
    "devices.removeData": {"query": {"name": "thermometer"}, "end": -86400000},
    "devices.payloadCounts": {"query": {"tags": {"site": "Bremerhaven"}}},
    # Organizations and the audit log.
    "orgs.post": {"name": "A second farm"},
    "org.patch": {"description": "The farm and its neighbours."},
    "org.inviteMember": {"email": "neighbour@example.com", "role": "view"},
    "orgInvites.post": {"email": "colleague@example.com", "token": "TOKEN", "accept": True},
    "org.transferResources": {
        "destinationId": IDS["userId"],
        "destinationType": "user",
        "dashboardIds": [IDS["dashboardId"]],
    },
    "me.respondToInvite": {"action": "accept"},
    "org.modifyMember": {"userId": IDS["userId"], "role": "admin"},
    # Reports of dashboards.
    "dashboards.post": {"name": "my view"},
    "dashboard.validateContext": {},
    "dashboard.data": {},
    "applicationDashboard.data": {"duration": 3600000},
    "dashboard.preview": {"blocks": [_BLOCK]},
    "applicationDashboard.preview": {"blocks": [_BLOCK], "duration": 3600000},
    "dashboard.sendReport": {"toEmail": ["admin@localhost"]},
    "applicationDashboard.sendReport": {
        "toEmail": ["admin@localhost"],
        "timezone": "Europe/Berlin",
        "locale": "de",
    },
    "dashboard.patch": {"refreshRate": 60},
    # Files.
    "privateFiles.post": {
        "name": "plan.pdf",
        "type": "file",
        "parentDirectory": "/drawings",
        "fileSize": 20480,
        "contentType": "application/pdf",
    },
    "privateFile.patch": {"contentType": "text/plain"},
    "files.post": {"name": "pictures/2024", "type": "directory"},
    "file.patch": {"contentType": "text/plain"},
    # Two-factor authentication and single sign-on.
    "auth.authenticateUserSaml": {"SAMLResponse": "RESPONSE", "SAMLDomain": "example.com"},
    "auth.authenticateUserCodehost": {"accessToken": "TOKEN"},
    "me.connectCodehost": {"accessToken": "TOKEN"},
    "me.enableTwoFactorAuth": {"password": "PASSWORD", "twoFactorCode": "123456"},
    "me.disableTwoFactorAuth": {"password": "PASSWORD", "twoFactorCode": "123456"},
    # Notebooks and resource jobs.
    "notebooks.post": {
        "name": "means of the week",
        "inputs": [
            {"inputType": "deviceData", "fileName": "states.csv", "start": -604800000, "end": 0},
            {"inputType": "dataTable", "fileName": "inspections.csv", "dataTableId": IDS["dataTableId"]},
        ],
        "outputs": [
            {
                "outputType": "executionResult",
                "fileName": "result.html",
                "destinationFileNameTemplate": "report.html",
            }
        ],
    },
    "notebook.patch": {"description": "For the meeting on Monday."},
    "notebook.execute": {},
    "notebook.requestInputDataExport": {"templateContext": "{}"},
    "resourceJob.execute": {},
    # Clones and templates.
    "application.clone": {"dryRun": True},
    "application.applyTemplate": {"templateId": IDS["templateId"]},
}
"""The body of each operation that takes one."""


def of_body(route: Route) -> Any:
    """The example of the body of an operation, which its row gives or else `BODIES`; None if it takes no body."""
    return BODIES.get(route.operation) if route.example is None else route.example


def id_of(name: str) -> str:
    """The id of no record for a parameter of the path with this name."""
    return IDS.get(name) or "6920c0de" + hashlib.blake2b(name.encode(), digest_size=8).hexdigest()


def of_path(route: Route, placeholder: str) -> str:
    """The example for a parameter of the path."""
    if placeholder == "name":
        return "temperature"
    if placeholder == "webhookToken":
        return "TOKEN"
    if placeholder == "filePath":
        return "notes.txt"
    if placeholder == "apiTokenId":
        placeholder = "userApiTokenId" if route.area == "user" else "applicationApiTokenId"
    if placeholder == "auditLogId" and route.area == "user":
        placeholder = "userAuditLogId"
    if placeholder == "dashboardId" and not route.path.startswith("/applications"):
        placeholder = "userDashboardId"
    return id_of(placeholder)
