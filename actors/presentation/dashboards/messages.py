"""The contract of dashboards: bodies, pages and views."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.page import Page
from trunkline.actors.core.values.changes import changes_of
from trunkline.actors.core.values.structs import BLANK, FORM, Body, Message, Query, View
from trunkline.actors.core.values.terms import (
    AnyTag,
    Description,
    Id,
    Key,
    Name,
    QueryTime,
    RecordView,
    TagFilters,
)
from trunkline.actors.core.values.terms import Ids as DeviceIds
from trunkline.actors.core.values.timestamps import TIMESTAMP_MS_MAX
from trunkline.actors.people.accounts.messages import Email, NewPassword
from trunkline.actors.platform.jobs.messages import CallbackUrl
from trunkline.actors.presentation.dashboards.blocks import Block

_BlockId = Annotated[str, Meta(max_length=48)]
_Title = Annotated[str, Meta(max_length=255)]
_Theme = Literal["dark", "light"]
_Rate = Annotated[int, Meta(ge=5, le=600)] | Annotated[float, Meta(ge=5, le=600)]
_Milliseconds = Annotated[int, Meta(ge=1, le=TIMESTAMP_MS_MAX)]


ContextValues = dict[Key, Description | int | float | AnyTag]
"""The values of parameters by name."""


class Delivery(Body, frozen=True):
    """Who gets a report, and what it looks like."""

    to_email: Annotated[list[Email], Meta(min_length=1, max_length=10)] | UnsetType = UNSET
    callback_url: CallbackUrl | UnsetType = UNSET
    subject: _Title | UnsetType = UNSET
    message: Description | UnsetType = UNSET
    theme: _Theme | UnsetType = UNSET
    timezone: _Title | UnsetType = UNSET
    locale: Annotated[str, Meta(max_length=5)] | UnsetType = UNSET
    ctx: ContextValues | UnsetType = UNSET
    branded: bool | UnsetType = UNSET


class Report(Delivery, frozen=True, kw_only=True):
    """A report that is sent on a schedule, by e-mail or to a URL."""

    cron: _Title
    id: _BlockId | UnsetType = UNSET


class _Parameter(Body, frozen=True):
    """The common fields of all parameters of a dashboard."""

    name: Key
    application_id: Id | UnsetType = UNSET
    validation_enabled: bool | UnsetType = UNSET


class Attributes(Body, frozen=True):
    """The attributes that a viewer may choose."""

    attributes: Annotated[list[Key], Meta(max_length=100)] | UnsetType = UNSET


class Devices(Body, frozen=True):
    """The devices that a viewer may choose."""

    device_ids: DeviceIds | UnsetType = UNSET
    device_tags: TagFilters | UnsetType = UNSET
    query: Annotated[str, Meta(max_length=8192)] | UnsetType | None = UNSET
    include_full_device: bool | UnsetType = UNSET


class DeviceTags(Body, frozen=True):
    """The tags that a viewer may choose."""

    device_tags: TagFilters | UnsetType = UNSET


class Bounds(Body, frozen=True):
    """The bounds of a number."""

    min: int | float | UnsetType = UNSET
    max: int | float | UnsetType = UNSET


class Pattern(Body, frozen=True):
    """The pattern that a text must match."""

    reg_exp: Annotated[str, Meta(max_length=1024)] | UnsetType = UNSET


class AttributeParameter(_Parameter, frozen=True, kw_only=True, tag_field="type", tag="deviceAttribute"):
    """A parameter that is an attribute of a device."""

    default_value: Description
    validation_config: Attributes | UnsetType = UNSET


class DeviceParameter(_Parameter, frozen=True, kw_only=True, tag_field="type", tag="deviceId"):
    """A parameter that is a device."""

    default_value: Description
    validation_config: Devices | UnsetType = UNSET


class TagParameter(_Parameter, frozen=True, kw_only=True, tag_field="type", tag="deviceTag"):
    """A parameter that is a tag of devices."""

    default_value: AnyTag
    validation_config: DeviceTags | UnsetType = UNSET


class NumberParameter(_Parameter, frozen=True, kw_only=True, tag_field="type", tag="number"):
    """A parameter that is a number, or a text that a client converts to a number."""

    default_value: int | float | str
    validation_config: Bounds | UnsetType = UNSET


class TextParameter(_Parameter, frozen=True, kw_only=True, tag_field="type", tag="string"):
    """A parameter that is a text."""

    default_value: Description
    validation_config: Pattern | UnsetType = UNSET


class ExperienceGroups(Body, frozen=True):
    """The groups of the users that a viewer may choose."""

    experience_group_ids: DeviceIds | UnsetType = UNSET


class ExperienceUserParameter(_Parameter, frozen=True, kw_only=True, tag_field="type", tag="experienceUser"):
    """A parameter that is a user of the experience."""

    default_value: Description
    validation_config: ExperienceGroups | UnsetType = UNSET


Parameter = (
    AttributeParameter
    | DeviceParameter
    | TagParameter
    | NumberParameter
    | TextParameter
    | ExperienceUserParameter
)
IdOrBlank = Annotated[
    str,
    Meta(
        pattern=r"^([A-Fa-f0-9]{24}|)(?!\n)$",
        extra={FORM: "an id of 24 hexadecimal digits, or nothing", BLANK: True},
    ),
]
_Parameters = Annotated[list[Parameter], Meta(max_length=100)]
_Reports = Annotated[list[Report], Meta(max_length=10)]


class DashboardPost(Body, frozen=True):
    """A new dashboard. `password` protects it if it is public."""

    name: Name
    blocks: list[Block] | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    refresh_rate: _Rate | UnsetType = UNSET
    duration: _Milliseconds | UnsetType = UNSET
    resolution: _Milliseconds | UnsetType = UNSET
    default_theme: _Theme | UnsetType = UNSET
    report_configs: _Reports | UnsetType = UNSET
    public: bool = False
    password: NewPassword | UnsetType | None = UNSET
    context_configuration: _Parameters | UnsetType = UNSET


@changes_of(DashboardPost)
class DashboardPatch(Body, frozen=True):
    """Changes of a dashboard; omitted fields stay as they are. Lists are replaced, null removes the password."""

    password: NewPassword | UnsetType | None = UNSET


class OwnedDashboardPost(DashboardPost, frozen=True):
    """A new dashboard of the current user, of an organization, or of an application."""

    application_id: Id | UnsetType = UNSET
    org_id: Id | UnsetType = UNSET


class DashboardPage(Page, frozen=True):
    """A page of dashboards."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None


class OwnedDashboardPage(Page, frozen=True):
    """A page of all dashboards that the user reaches, narrowed by application or organization; blank for those of
    none."""

    sort_field: Literal["name", "id", "creationDate", "ownerId", "applicationId", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None
    application_id: IdOrBlank | None = None
    org_id: IdOrBlank | None = None


class DashboardPassword(Query, frozen=True):
    """The password of a public dashboard, for calls without a token."""

    password: Annotated[str, Meta(max_length=2048)] | None = None


class _DashboardFields(RecordView, frozen=True, kw_only=True):
    """What is shown of every dashboard."""

    dashboard_id: Id
    created_by_id: Id
    created_by_type: Literal["flow", "user", "apiToken"]
    last_updated_by_id: Id
    last_updated_by_type: Literal["flow", "user", "apiToken"]
    name: str
    blocks: list[Any]
    public: bool
    is_password_protected: bool
    report_configs: list[Any]
    context_configuration: list[Any]
    description: str | None = None
    refresh_rate: int | float | None = None
    duration: int | None = None
    resolution: int | None = None
    default_theme: _Theme | None = None


class DashboardView(_DashboardFields, frozen=True, kw_only=True):
    """A dashboard of an application."""

    application_id: Id


class OwnedDashboardView(_DashboardFields, frozen=True, kw_only=True):
    """A dashboard with its owner. Without a token its reports are left out."""

    owner_id: Id
    owner_type: Literal["user", "organization"]
    organization_name: str | None = None
    organization_icon_color: str | None = None
    application_id: Id | None = None
    application_name: str | None = None


class ContextQuery(DashboardPassword, frozen=True):
    """The password of a public dashboard, and the range that the viewer has chosen."""

    duration: _Milliseconds | None = None
    resolution: _Milliseconds | None = None
    end: QueryTime | None = None


class ContextDashboard(View, frozen=True):
    """The dashboard with the range that the viewer has chosen."""

    name: str
    id: Id
    duration: int | None = None
    resolution: int | None = None
    refresh_rate: int | float | None = None


class ContextView(View, frozen=True):
    """All parameters have a value that fits. A device that is to be shown whole is an object."""

    success: Literal[True]
    ctx: dict[Key, Any]
    dashboard: ContextDashboard


class ContextRefusal(View, frozen=True):
    """A parameter has a value that does not fit. `ctx` are the values that were found before it."""

    type: str
    message: str
    invalid_ctx_name: Key
    ctx: dict[Key, Any]
    dashboard: ContextDashboard


class ValidateContext(Message, frozen=True):
    """Check `ctx`, the values of the parameters of a dashboard. `first` as in `FindDashboard`.

    `refused` are applications of which the caller may not be shown what an operation reads (`rights.py`).
    """

    dashboard: bytes
    first: bytes | None
    ctx: dict[str, Any]
    query: ContextQuery
    refused: frozenset[tuple[bytes, str]] = frozenset()


class SendReport(Delivery, frozen=True):
    """The readers of a report, and what it looks like.

    `time` in ms since 1970: the report shows what the dashboard showed then. `timezone` is a name such as
    Europe/Berlin, `locale` such as de or pt_BR.
    """

    time: int | float | UnsetType = UNSET


class FindDashboard(Message, frozen=True):
    """Find a dashboard by its id alone. The answer is a `Held`. The parent `first` is looked at first."""

    dashboard: bytes
    first: bytes | None


class ListOwnedDashboards(Message, frozen=True):
    """A page of the dashboards of a user, and of the applications and organizations that the user reaches."""

    user: bytes
    query: OwnedDashboardPage
