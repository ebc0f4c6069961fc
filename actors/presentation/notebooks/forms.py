"""The inputs and outputs of a notebook: a form for each type, and the checks that need no other record.

A text may hold templates (`{{path}}`), which are filled in from the context of an export. So an id or a file name in
these forms is either what it is named, or a text with a template.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.outgoing.http_calls import check_url
from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.query.fields import Fields
from trunkline.actors.core.query.text import parse_query
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import FORM, Body
from trunkline.actors.core.values.template import has_template
from trunkline.actors.core.values.terms import Key, OptionalTemplateId, TagFilter
from trunkline.actors.data.events.messages import EVENT_FIELDS
from trunkline.actors.fleet.devices.record.terms import DEVICE_FIELDS

FILE_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[0-9A-Za-z_.-]{1,255}")
FILE_NAME_FORM: Final = "1 to 255 letters, digits, _, - and ., other than . and .."

FileName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        pattern=r"^((?!\.{1,2}$)[0-9a-zA-Z_.-]{1,255}(?!\n)|.*\{\{.+\}\}.*)$",
        extra={FORM: f"{FILE_NAME_FORM}; or a text with a template {{{{path}}}}"},
    ),
]
_TagKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        pattern=r"^([0-9a-zA-Z_-]{1,255}(?!\n)|.*\{\{.+\}\}.*)$",
        extra={FORM: "1 to 255 letters, digits, _ and -; or a text with a template {{path}}"},
    ),
]
_Query = Annotated[str, Meta(max_length=8192)]
_Path = Annotated[str, Meta(min_length=1, max_length=2048)]
_Text = Annotated[str, Meta(min_length=1, max_length=1024)]
_Number = int | float


class InputTag(Body, frozen=True):
    """Matches a device that has a tag with this key, with this value, or with both."""

    hint: ClassVar[str] = TagFilter.hint

    key: _TagKey | UnsetType = UNSET
    value: Annotated[str, Meta(min_length=1, max_length=255)] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.key is UNSET and self.value is UNSET:
            raise ValueError(self.hint)


class _Input(Body, frozen=True, kw_only=True, tag_field="inputType"):
    """An input: `fileName` is the file that the notebook reads."""

    file_name: FileName


class _OfDevices(_Input, frozen=True, kw_only=True):
    """Devices are selected by id, by tag or by query; without any of the three all devices are."""

    device_tags: Annotated[list[InputTag], Meta(max_length=100)] | UnsetType = UNSET
    device_ids: Annotated[list[OptionalTemplateId], Meta(max_length=100)] | UnsetType = UNSET
    query_json: _Query | UnsetType = UNSET


class DeviceDataInput(_OfDevices, frozen=True, kw_only=True, tag="deviceData"):
    """The states of devices in a range, as CSV."""

    attributes: Annotated[list[Key], Meta(max_length=100)] | UnsetType = UNSET
    start: _Number
    end: _Number


class ConnectionHistoryInput(_OfDevices, frozen=True, kw_only=True, tag="deviceConnectionHistory"):
    """The changes of the connections of devices in a range, as CSV."""

    start: _Number
    end: _Number


class DeviceMetadataInput(_OfDevices, frozen=True, kw_only=True, tag="deviceMetadata"):
    """The records of devices."""

    format: Literal["csv", "json"] = "csv"


class DataTableInput(_Input, frozen=True, kw_only=True, tag="dataTable"):
    """The rows of a data table, as CSV."""

    data_table_id: OptionalTemplateId
    query_json: _Query | UnsetType = UNSET


class EventDataInput(_Input, frozen=True, kw_only=True, tag="eventData"):
    """The events of the application."""

    query_json: _Query | UnsetType = UNSET
    format: Literal["csv", "json"] = "csv"


class ExternalUrlInput(_Input, frozen=True, kw_only=True, tag="externalUrl"):
    """What lies at a public URL."""

    source_url: _Text


class ApplicationFileInput(_Input, frozen=True, kw_only=True, tag="applicationFile"):
    """A file of the application."""

    file_path: _Path
    private: bool | UnsetType = UNSET


NotebookInput = (
    DeviceDataInput
    | ConnectionHistoryInput
    | DeviceMetadataInput
    | DataTableInput
    | EventDataInput
    | ExternalUrlInput
    | ApplicationFileInput
)


class _Output(Body, frozen=True, kw_only=True, tag_field="outputType"):
    """An output: what becomes of a file that the notebook writes."""


class DataTableOutput(_Output, frozen=True, kw_only=True, tag="dataTable"):
    """The rows of the file are inserted into a data table."""

    file_name: FileName
    data_table_id: OptionalTemplateId
    create_missing_columns: bool | UnsetType = UNSET
    truncate_existing_table: bool | UnsetType = UNSET


class FileOutput(_Output, frozen=True, kw_only=True, tag="file"):
    """The file becomes a file of the application."""

    file_name: FileName
    destination_directory_template: _Text | UnsetType = UNSET
    destination_file_name_template: _Text
    destination_private: bool | UnsetType = UNSET


class DirectoryOutput(_Output, frozen=True, kw_only=True, tag="directory"):
    """The files of a directory become files of the application."""

    directory_name: FileName
    destination_directory_template: _Text
    destination_private: bool | UnsetType = UNSET


class ResultOutput(_Output, frozen=True, kw_only=True, tag="executionResult"):
    """The executed notebook becomes a file of the application."""

    file_name: Literal["result.html", "result.pdf", "result.ipynb", "result.error.log", "result.log"]
    destination_directory_template: _Text | UnsetType = UNSET
    destination_file_name_template: _Text | UnsetType = UNSET
    destination_private: bool | UnsetType = UNSET


class TemporaryUrlOutput(_Output, frozen=True, kw_only=True, tag="temporaryUrl"):
    """The file gets a link that expires."""

    file_name: FileName


NotebookOutput = DataTableOutput | FileOutput | DirectoryOutput | ResultOutput | TemporaryUrlOutput

Inputs = Annotated[list[NotebookInput], Meta(max_length=100)]
Outputs = Annotated[list[NotebookOutput], Meta(max_length=100)]


_QUERIED: Final[dict[str, Fields]] = {
    "deviceData": DEVICE_FIELDS,
    "deviceConnectionHistory": DEVICE_FIELDS,
    "deviceMetadata": DEVICE_FIELDS,
    "eventData": EVENT_FIELDS,
}
"""The fields that the query of an input may name. Those of a data table are its columns, which may change."""


def check_inputs(inputs: list[Doc], *, private: Callable[[str], bool]) -> None:
    """Check queries, URLs, and that no two inputs have the same file. Raises `Invalid` naming the field.

    What holds a template is checked when it is filled in. `private` says of a URL whether its address
    may be one that is not public.
    """
    names: dict[str, int] = {}
    for position, each in enumerate(inputs):
        at = f"inputs[{position}]"
        first = names.setdefault(each["fileName"], position)
        if first != position:
            raise Invalid(
                f"{at}.fileName: {each['fileName']} is the file of inputs[{first}]; name another one."
            )
        text = each.get("queryJson")
        if text is not None and not has_template(text):
            check_query(text, each["inputType"], f"{at}.queryJson")
        url = each.get("sourceUrl")
        if url is not None and not has_template(url):
            check_url(url, private=private(url), field=f"{at}.sourceUrl")


def check_query(text: str, type: str, at: str) -> Any:
    """The advanced query in the text of an input. Raises `Invalid` naming the field."""
    query, fields = parse_query(text, at), _QUERIED.get(type)
    if fields is not None:
        compile_query(query, fields, at=at)
    return query
