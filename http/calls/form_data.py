"""Forms with files (multipart/form-data, RFC 7578), read in pieces while they arrive.

Owns the bounds on what is kept of a form in memory: everything but the contents of files. Does not own parsing
(Werkzeug's decoder, which does no I/O) nor the bound on the whole body (`body_stream.py`).

The decoder is given the end of a delimiter as a whole: with a part of it, it takes half of the line break before the
delimiter for the end of the file (https://github.com/pallets/werkzeug/issues/3285).
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

import msgspec
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Event, Field, File, MultipartDecoder, NeedData

from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.core.values.invalid_input import invalid
from trunkline.http.calls.body_stream import BodyStream
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import UnsupportedMediaType

T = TypeVar("T")

_BOUNDARY_CHARS_MAX: Final = 70
_LINE_BYTES_MAX: Final = 256
"""More than a delimiter with the line break before it and what is held of its end."""
_OPEN_END: Final = rb"(?:\r\n|\r|\n)--%b(-|[ \t]{1,64}\r?|\r)\Z"
"""A delimiter whose line has begun and not ended. With more spaces behind it, it is none."""


class FilePart:
    """A file of a form. Iterate over it once, to its end, before the form is read further."""

    def __init__(self, form: FormData, event: File | Field) -> None:
        self._form = form
        self.name = event.name
        self.file_name = event.filename if isinstance(event, File) else None
        self.content_type: str | None = event.headers.get("content-type")

    def __aiter__(self) -> FilePart:
        return self

    async def __anext__(self) -> bytes:
        """The next piece of the file. Raises Invalid if the form ends before the file."""
        while self._form.in_file:
            event = await self._form.next_event()
            assert isinstance(event, Data)
            self._form.in_file = event.more_data
            if event.data:
                return event.data
        raise StopAsyncIteration


class FormData:
    """A form: its fields so far, and its files one after the other."""

    def __init__(self, call: Call) -> None:
        """The form of a call of a route with `streams_body`. Raises UnsupportedMediaType if it is none."""
        limits = call.service.system.limits
        self._kept_bytes_max = limits.form_fields_bytes_max
        self._fields_max = limits.form_parts_max
        stream = call.request.stream
        assert stream is not None
        self._stream: BodyStream = stream
        self._kept_bytes = 0
        self._parts = 0
        self.in_file = False
        kind, options = parse_options_header(call.request.header(b"content-type") or "")
        boundary = options.get("boundary", "")
        if kind != "multipart/form-data":
            raise UnsupportedMediaType(
                "The body must be a form with a file (Content-Type: multipart/form-data)."
            )
        if not 0 < len(boundary) <= _BOUNDARY_CHARS_MAX or not boundary.isascii():
            raise Invalid("Content-Type: needs a boundary of 1 to 70 ASCII characters.")
        self._decoder = MultipartDecoder(boundary.encode())
        self._open_end = re.compile(_OPEN_END % re.escape(boundary.encode()))
        self._held = b""
        """The end of what has come, if that is the beginning of the end of a delimiter."""
        self.fields: dict[str, str] = {}
        """The fields that have come so far."""

    def check_size(self, file_bytes: int) -> None:
        """Raise if the announced length of the body shows that its file has another size; before the file is read."""
        announced = self._stream.announced_bytes
        if announced is None:
            return
        if announced > file_bytes + self._kept_bytes_max:
            raise PayloadTooLarge(
                f"The body has {announced} bytes, but the file must have {file_bytes}, as fileSize says."
            )
        if announced < file_bytes:
            raise Invalid(
                f"The body has {announced} bytes, but the file must have {file_bytes}, as fileSize says."
            )

    async def next_file(self, name: str | None = None) -> FilePart | None:
        """Read fields until a file comes, and return that; None at the end of the form.

        A part of this `name` is a file also without a file name: clients that have only the content send none.
        """
        assert not self.in_file, "the file before was not read to its end"
        while True:
            event = await self.next_event()
            if isinstance(event, File) or (isinstance(event, Field) and event.name == name):
                self._begin_part(event.name)
                self.in_file = True
                return FilePart(self, event)
            if isinstance(event, Field):
                self._begin_part(event.name)
                if event.name in self.fields:
                    raise Invalid(f"{event.name}: is sent twice; send each field once.")
                self.fields[event.name] = await self._value(event.name)
            elif isinstance(event, Epilogue):
                return None

    async def expect_file(self, name: str) -> FilePart:
        """Read fields until the file of this name comes. Raises Invalid for another one, or none."""
        found = await self.next_file(name)
        if found is None:
            raise Invalid(f"{name}: the form has no such file; send it as the last part.")
        if found.name != name:
            raise Invalid(f"{found.name}: the form has a file of this name; name it {name}.")
        return found

    async def expect_end(self) -> None:
        """Read the end of the form. Raises Invalid if another part comes."""
        count = len(self.fields)
        if await self.next_file() is not None or len(self.fields) > count:
            raise Invalid("The form has a part behind the file, which must be the last one.")

    def fields_as(self, type: type[T]) -> T:
        """The fields as a struct. Raises Invalid for a wrong or unknown one."""
        try:
            return msgspec.convert(self.fields, type, strict=False)
        except msgspec.ValidationError as error:
            raise invalid(error, "form", type, self.fields) from None

    def _begin_part(self, name: Any) -> None:
        self._parts += 1
        if not isinstance(name, str) or not name:
            raise Invalid("Each part of the form needs a name.")
        if self._parts > self._fields_max:
            raise PayloadTooLarge(f"The form has more than {self._fields_max} parts.")
        self._kept_bytes += len(name)

    async def _value(self, name: str) -> str:
        data = bytearray()
        more = True
        while more:
            event = await self.next_event()
            assert isinstance(event, Data)
            data += event.data
            self._kept_bytes += len(event.data)
            more = event.more_data
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise Invalid(f"{name[:100]}: is not UTF-8.") from None

    async def next_event(self) -> Event:
        """The next part, or piece of a part. What is not in a file counts against the bound."""
        while True:
            try:
                event = self._decoder.next_event()
            except ValueError:
                raise Invalid("The form is malformed, or ended before it was complete.") from None
            if not isinstance(event, NeedData):
                return event
            if not self.in_file and self._kept_bytes + len(self._decoder.buffer) > self._kept_bytes_max:
                raise PayloadTooLarge(
                    f"The fields of the form have more than {self._kept_bytes_max} bytes; only a file may have more."
                )
            self._receive(await anext(self._stream, None))

    def _receive(self, piece: bytes | None) -> None:
        """Give the decoder a piece of the body, None at the end, but for the beginning of the end of a delimiter."""
        data, self._held = self._held + (piece or b""), b""
        if piece is not None:
            last = bytes(self._decoder.buffer[-_LINE_BYTES_MAX:]) + data[-_LINE_BYTES_MAX:]
            if found := self._open_end.search(last):
                self._held = found[1]
                data = data[: len(data) - len(self._held)]
        self._decoder.receive_data(data)
        if piece is None:
            self._decoder.receive_data(None)
