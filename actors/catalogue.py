"""The catalogue: the lists of all kinds of records, actors, jobs and plain resources.

They are registered only here. The sweep of deleted applications, the verification of a store, the counts in
summaries, the readers of plain resources and the schemas of queries are derived from these lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trunkline.actors.access.certificates import AUTHORITIES, CERTIFICATES
from trunkline.actors.connections.credentials.resource import CREDENTIALS
from trunkline.actors.connections.integrations.actor import Integration
from trunkline.actors.connections.integrations.resource import INTEGRATIONS
from trunkline.actors.connections.webhooks.actor import Webhook
from trunkline.actors.connections.webhooks.resource import WEBHOOKS
from trunkline.actors.core.contents.uploads import UploadOwner
from trunkline.actors.core.query.fields import Fields
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.records.resource import Resource, Resources
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.data.events.actor import EventLog
from trunkline.actors.data.events.export import EVENT_EXPORT
from trunkline.actors.data.events.jobs import DELETE_EVENTS, PATCH_EVENTS
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.data.events.messages import EVENT_FIELDS
from trunkline.actors.data.files.actor import FileTree
from trunkline.actors.data.files.jobs import DELETE_DIRECTORY, DELETE_PRIVATE_DIRECTORY
from trunkline.actors.data.files.kind import FILE, PRIVATE_FILE
from trunkline.actors.data.tables.actor import DataTable
from trunkline.actors.data.tables.export import ROW_EXPORT
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.data.tables.messages import ROW_FIELDS
from trunkline.actors.data.topics.actor import Publisher
from trunkline.actors.engine.dry_run import FlowTester
from trunkline.actors.fleet.deployments.actor import Deployments
from trunkline.actors.fleet.deployments.export import DEPLOYMENT_EXPORT
from trunkline.actors.fleet.deployments.kind import EDGE_DEPLOYMENT, EMBEDDED_DEPLOYMENT
from trunkline.actors.fleet.devices.actor.actor import Device
from trunkline.actors.fleet.devices.bulk.bulk_jobs import DELETE_DEVICES, PATCH_DEVICES, RESTORE_DEVICES
from trunkline.actors.fleet.devices.bulk.removal_jobs import REMOVE_DEVICE_DATA, REMOVE_DEVICES_DATA
from trunkline.actors.fleet.devices.queries.payload_export import PAYLOAD_COUNTS_EXPORT
from trunkline.actors.fleet.devices.queries.record_export import DEVICES_EXPORT
from trunkline.actors.fleet.devices.queries.state_export import DATA_EXPORT, DEVICE_EXPORT
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.actors.fleet.devices.record.terms import DEVICE_FIELDS
from trunkline.actors.fleet.recipes.bulk_create import BULK_CREATE
from trunkline.actors.fleet.recipes.resource import RECIPES
from trunkline.actors.people.accounts.actor import User
from trunkline.actors.people.accounts.ended_logins import ENDED_LOGINS
from trunkline.actors.people.accounts.recent_items import RECENT_ITEMS
from trunkline.actors.people.accounts.sso import SSO_LOGINS
from trunkline.actors.people.accounts.tokens import API_TOKEN, APPLICATION_TOKENS, USER_TOKENS
from trunkline.actors.people.accounts.two_factor import TWO_FACTOR
from trunkline.actors.people.audit.actor import AuditLog
from trunkline.actors.people.audit.messages import AUDIT_ENTRY
from trunkline.actors.people.organizations.actor import Organization
from trunkline.actors.people.organizations.invitations import INVITE, INVITED
from trunkline.actors.people.organizations.membership import MEMBER, MEMBERSHIP, ORGANIZATION
from trunkline.actors.platform.applications.actor import Application
from trunkline.actors.platform.applications.keys import KEYS
from trunkline.actors.platform.applications.readme import README
from trunkline.actors.platform.jobs.job import JobKind
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.actors.platform.jobs.messages import JOB_LOG_FIELDS
from trunkline.actors.portability.archives.jobs import ARCHIVE_DATA, ARCHIVE_EVENTS, ARCHIVE_TABLES, BACKFILL
from trunkline.actors.portability.bundles.clone import CLONE
from trunkline.actors.portability.bundles.export import APPLICATION_EXPORT
from trunkline.actors.portability.bundles.import_jobs import IMPORT_INTO, IMPORT_NEW
from trunkline.actors.portability.templates.apply import APPLY_TEMPLATE, CREATE_FROM_TEMPLATE
from trunkline.actors.presentation.dashboards.actor import UserJobs
from trunkline.actors.presentation.dashboards.report_job import APPLICATION_REPORT, USER_REPORT
from trunkline.actors.presentation.dashboards.resource import DASHBOARDS, USER_DASHBOARDS
from trunkline.actors.presentation.experience.actor import Experience
from trunkline.actors.presentation.experience.domains import DOMAINS
from trunkline.actors.presentation.experience.endpoints import ENDPOINTS
from trunkline.actors.presentation.experience.groups import GROUPS
from trunkline.actors.presentation.experience.kind import DEVELOP, ENDPOINT_COPY, VIEW_COPY
from trunkline.actors.presentation.experience.requests import EndpointRequests
from trunkline.actors.presentation.experience.slugs import SLUGS
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS
from trunkline.actors.presentation.experience.versions import VERSIONS
from trunkline.actors.presentation.experience.views import VIEWS
from trunkline.actors.presentation.notebooks.actor import Notebook, Notebooks
from trunkline.actors.presentation.notebooks.export import INPUT_EXPORT
from trunkline.actors.presentation.notebooks.resource import NOTEBOOKS
from trunkline.actors.presentation.notebooks.resource_jobs import RESOURCE_JOBS
from trunkline.actors.workflows.flows.actor import Flow
from trunkline.actors.workflows.flows.jobs import DELETE_VERSIONS
from trunkline.actors.workflows.flows.kind import FLOW, FLOW_VERSION
from trunkline.actors.workflows.flows.messages import FLOW_BY_VERSION_FIELDS, FLOW_FIELDS, FLOW_VERSION_FIELDS
from trunkline.actors.workflows.triggers.button import VirtualButton
from trunkline.actors.workflows.triggers.replay import FlowReplayer
from trunkline.actors.workflows.triggers.scheduled import ScheduledPresses

ACTORS: Final[tuple[type[Actor], ...]] = (
    User,
    Organization,
    Application,
    Device,
    DataTable,
    EventLog,
    Experience,
    EndpointRequests,
    Flow,
    VirtualButton,
    ScheduledPresses,
    FlowReplayer,
    FlowTester,
    Webhook,
    AuditLog,
    Deployments,
    UserJobs,
    # Notebooks.
    Notebook,
    Notebooks,
    # Files.
    FileTree,
    # Topics and integrations.
    Publisher,
    Integration,
)

_RESOURCES: Final[tuple[Resource, ...]] = (
    KEYS,
    APPLICATION_TOKENS,
    USER_TOKENS,
    DASHBOARDS,
    USER_DASHBOARDS,
    RECIPES,
    WEBHOOKS,
    CREDENTIALS,
    INTEGRATIONS,
    CERTIFICATES,
    AUTHORITIES,
    # Experience.
    ENDPOINTS,
    VIEWS,
    VERSIONS,
    DOMAINS,
    SLUGS,
    GROUPS,
    EXPERIENCE_USERS,
    # Notebooks and resource jobs.
    NOTEBOOKS,
    RESOURCE_JOBS,
)
"""The plain resources."""

RESOURCES: Final = Resources({resource.name: resource for resource in _RESOURCES})

_KINDS: Final[tuple[Kind, ...]] = (
    USER,
    ORGANIZATION,
    MEMBER,
    MEMBERSHIP,
    INVITE,
    INVITED,
    APPLICATION,
    DEVICE,
    DELETED_DEVICE,
    API_TOKEN,
    RECENT_ITEMS,
    SSO_LOGINS,
    TWO_FACTOR,
    ENDED_LOGINS,
    JOB,
    DATA_TABLE,
    EVENT,
    README,
    DEVELOP,
    ENDPOINT_COPY,
    VIEW_COPY,
    FLOW,
    FLOW_VERSION,
    AUDIT_ENTRY,
    EDGE_DEPLOYMENT,
    EMBEDDED_DEPLOYMENT,
    # Files.
    FILE,
    PRIVATE_FILE,
    *(resource.kind for resource in _RESOURCES),
)

KINDS: Final = {kind.name: kind for kind in _KINDS}
"""All kinds of records by name."""

UPLOADS: Final[Mapping[str, UploadOwner]] = {
    kind.name: UploadOwner(kind, FileTree.kind) for kind in (FILE, PRIVATE_FILE)
}
"""The kinds of records whose contents are uploaded by a signed form, each with the actor that completes them."""

COUNTED: Final = {kind.counted_as: kind for kind in KINDS.values() if kind.counted_as is not None}
"""The fields of an application's summary, each with the kind of records that it counts."""

QUERY_FIELDS: Final[tuple[Fields, ...]] = (
    DEVICE_FIELDS,
    EVENT_FIELDS,
    JOB_LOG_FIELDS,
    ROW_FIELDS,
    FLOW_FIELDS,
    FLOW_BY_VERSION_FIELDS,
    FLOW_VERSION_FIELDS,
    *(resource.fields for resource in _RESOURCES if resource.fields is not None),
)
"""The fields that an advanced query may use, for each resource that supports one."""

JOB_KINDS: Final[tuple[JobKind, ...]] = (
    APPLICATION_REPORT,
    USER_REPORT,
    DEVICE_EXPORT,
    DEVICES_EXPORT,
    DATA_EXPORT,
    ROW_EXPORT,
    EVENT_EXPORT,
    PATCH_EVENTS,
    DELETE_EVENTS,
    PATCH_DEVICES,
    DELETE_DEVICES,
    RESTORE_DEVICES,
    DELETE_VERSIONS,
    DEPLOYMENT_EXPORT,
    REMOVE_DEVICE_DATA,
    REMOVE_DEVICES_DATA,
    PAYLOAD_COUNTS_EXPORT,
    BULK_CREATE,
    # Notebooks.
    INPUT_EXPORT,
    # Files.
    DELETE_DIRECTORY,
    DELETE_PRIVATE_DIRECTORY,
    # Clones and templates.
    CLONE,
    APPLY_TEMPLATE,
    CREATE_FROM_TEMPLATE,
    # Bundles.
    APPLICATION_EXPORT,
    IMPORT_INTO,
    IMPORT_NEW,
    # Archives.
    ARCHIVE_DATA,
    BACKFILL,
    ARCHIVE_TABLES,
    ARCHIVE_EVENTS,
)
