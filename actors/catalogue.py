"""The catalogue: the lists of all kinds of records, actors, jobs and plain resources.

They are registered only here. The sweep of deleted applications, the verification of a store, the counts in
summaries, the readers of plain resources and the schemas of queries are derived from these lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trunkline.actors.accounts.actor import User
from trunkline.actors.accounts.ended_logins import ENDED_LOGINS
from trunkline.actors.accounts.recent_items import RECENT_ITEMS
from trunkline.actors.accounts.sso import SSO_LOGINS
from trunkline.actors.accounts.tokens import API_TOKEN, APPLICATION_TOKENS, USER_TOKENS
from trunkline.actors.accounts.two_factor import TWO_FACTOR
from trunkline.actors.applications.actor import Application
from trunkline.actors.applications.keys import KEYS
from trunkline.actors.applications.readme import README
from trunkline.actors.archives.jobs import ARCHIVE_DATA, ARCHIVE_EVENTS, ARCHIVE_TABLES, BACKFILL
from trunkline.actors.audit.actor import AuditLog
from trunkline.actors.audit.messages import AUDIT_ENTRY
from trunkline.actors.bundles.clone import CLONE
from trunkline.actors.bundles.export import APPLICATION_EXPORT
from trunkline.actors.bundles.import_jobs import IMPORT_INTO, IMPORT_NEW
from trunkline.actors.contents.uploads import UploadOwner
from trunkline.actors.dashboards.actor import UserJobs
from trunkline.actors.dashboards.resource import DASHBOARDS, USER_DASHBOARDS
from trunkline.actors.deployments.actor import Deployments
from trunkline.actors.deployments.export import DEPLOYMENT_EXPORT
from trunkline.actors.deployments.kind import EDGE_DEPLOYMENT, EMBEDDED_DEPLOYMENT
from trunkline.actors.devices.actor import Device
from trunkline.actors.devices.bulk_jobs import DELETE_DEVICES, PATCH_DEVICES, RESTORE_DEVICES
from trunkline.actors.devices.kind import DELETED_DEVICE, DEVICE
from trunkline.actors.devices.payload_export import PAYLOAD_COUNTS_EXPORT
from trunkline.actors.devices.record_export import DEVICES_EXPORT
from trunkline.actors.devices.removal_jobs import REMOVE_DEVICE_DATA, REMOVE_DEVICES_DATA
from trunkline.actors.devices.state_export import DATA_EXPORT, DEVICE_EXPORT
from trunkline.actors.devices.terms import DEVICE_FIELDS
from trunkline.actors.engine.dry_run import FlowTester
from trunkline.actors.events.actor import EventLog
from trunkline.actors.events.export import EVENT_EXPORT
from trunkline.actors.events.jobs import DELETE_EVENTS, PATCH_EVENTS
from trunkline.actors.events.kind import EVENT
from trunkline.actors.events.messages import EVENT_FIELDS
from trunkline.actors.experience.actor import Experience
from trunkline.actors.experience.domains import DOMAINS
from trunkline.actors.experience.endpoints import ENDPOINTS
from trunkline.actors.experience.groups import GROUPS
from trunkline.actors.experience.kind import DEVELOP, ENDPOINT_COPY, VIEW_COPY
from trunkline.actors.experience.requests import EndpointRequests
from trunkline.actors.experience.slugs import SLUGS
from trunkline.actors.experience.users import EXPERIENCE_USERS
from trunkline.actors.experience.versions import VERSIONS
from trunkline.actors.experience.views import VIEWS
from trunkline.actors.files.actor import FileTree
from trunkline.actors.files.jobs import DELETE_DIRECTORY, DELETE_PRIVATE_DIRECTORY
from trunkline.actors.files.kind import FILE, PRIVATE_FILE
from trunkline.actors.flows.actor import Flow
from trunkline.actors.flows.jobs import DELETE_VERSIONS
from trunkline.actors.flows.kind import FLOW, FLOW_VERSION
from trunkline.actors.flows.messages import FLOW_BY_VERSION_FIELDS, FLOW_FIELDS, FLOW_VERSION_FIELDS
from trunkline.actors.integrations.actor import Integration
from trunkline.actors.jobs.job import JobKind
from trunkline.actors.jobs.kind import JOB
from trunkline.actors.jobs.messages import JOB_LOG_FIELDS
from trunkline.actors.notebooks.actor import Notebook, Notebooks
from trunkline.actors.notebooks.export import INPUT_EXPORT
from trunkline.actors.notebooks.resource import NOTEBOOKS
from trunkline.actors.organizations.actor import Organization
from trunkline.actors.organizations.invitations import INVITE, INVITED
from trunkline.actors.organizations.membership import MEMBER, MEMBERSHIP, ORGANIZATION
from trunkline.actors.plain.certificates import AUTHORITIES, CERTIFICATES
from trunkline.actors.plain.credentials import CREDENTIALS
from trunkline.actors.plain.device_recipes import RECIPES
from trunkline.actors.plain.integrations import INTEGRATIONS
from trunkline.actors.plain.resource_jobs import RESOURCE_JOBS
from trunkline.actors.query.fields import Fields
from trunkline.actors.recipes.bulk_create import BULK_CREATE
from trunkline.actors.records.kind import Kind
from trunkline.actors.records.kinds import APPLICATION, USER
from trunkline.actors.records.resource import Resource, Resources
from trunkline.actors.report_job import APPLICATION_REPORT, USER_REPORT
from trunkline.actors.runtime.actor import Actor
from trunkline.actors.tables.actor import DataTable
from trunkline.actors.tables.export import ROW_EXPORT
from trunkline.actors.tables.kind import DATA_TABLE
from trunkline.actors.tables.messages import ROW_FIELDS
from trunkline.actors.templates.apply import APPLY_TEMPLATE, CREATE_FROM_TEMPLATE
from trunkline.actors.topics.actor import Publisher
from trunkline.actors.triggers.button import VirtualButton
from trunkline.actors.triggers.replay import FlowReplayer
from trunkline.actors.triggers.scheduled import ScheduledPresses
from trunkline.actors.webhooks.actor import Webhook
from trunkline.actors.webhooks.resource import WEBHOOKS

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
