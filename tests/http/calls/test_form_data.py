"""Forms come in pieces that end anywhere: each byte of a file is the file's, and no other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from trunkline.http.calls.form_data import FormData
from trunkline.limits.table import Limits

BOUNDARY = b"b1--b2"
DELIMITER = b"\r\n--" + BOUNDARY
CONTENTS = [
    b"",
    b"plain",
    b"\r",
    b"\n",
    b"ends with a line\r\n",
    b"ends with half of one\r",
    b"two\r\n\r\n",
    DELIMITER[:-1],
    DELIMITER + b"-",
    DELIMITER + b"x-- and goes on",
    b"\r\r\n--" + BOUNDARY[:3],
    b"a" * 200,
]
ENDS = [b"--\r\n", b"--", b"--\r\nepilogue", b"-- \r\n"]


class Stream:
    """A body in these pieces."""

    announced_bytes = None

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> bytes:
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration


async def read(pieces: Iterable[bytes]) -> tuple[dict[str, str], bytes]:
    """The fields and the file of a form that comes in these pieces."""
    request = SimpleNamespace(
        stream=Stream(pieces), header=lambda _name: f'multipart/form-data; boundary="{BOUNDARY.decode()}"'
    )
    call: Any = SimpleNamespace(
        request=request, service=SimpleNamespace(system=SimpleNamespace(limits=Limits()))
    )
    form = FormData(call)
    content = b"".join([piece async for piece in await form.expect_file("file")])
    await form.expect_end()
    return form.fields, content


def form(content: bytes, end: bytes = b"--\r\n", padding: bytes = b"") -> bytes:
    return (
        b"--%b\r\nContent-Disposition: form-data; name=field\r\n\r\nvalue\r" % BOUNDARY
        + DELIMITER
        + padding
        + b'\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
        + content
        + DELIMITER
        + end
    )


def halves(body: bytes) -> Iterator[list[bytes]]:
    for at in range(1, len(body)):
        yield [body[:at], body[at:]]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("content", CONTENTS)
async def test_a_file_is_the_same_wherever_the_pieces_end(content: bytes, end: bytes) -> None:
    body = form(content, end)
    for pieces in [[body], [body[at : at + 1] for at in range(len(body))], *halves(body)]:
        assert await read(pieces) == ({"field": "value\r"}, content), pieces


async def test_spaces_behind_a_delimiter_are_part_of_it() -> None:
    body = form(b"content", padding=b" \t ")
    for pieces in halves(body):
        assert await read(pieces) == ({"field": "value\r"}, b"content"), pieces
