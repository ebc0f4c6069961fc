"""Reading bundles: what is in one, line by line, from a zip or from memory.

Owns the form of entries and lines. A fault of the whole raises `Invalid` or `PayloadTooLarge`; a fault of one line is
raised when that line is parsed, so that all of them can be collected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, Protocol

import msgspec

from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.core.values.nesting import check_nesting
from trunkline.actors.portability.bundles.portable import BY_NAME, MANIFEST, PORTABLE, VERSION, Line, Manifest
from trunkline.actors.portability.bundles.zip_reader import ZipReader

if TYPE_CHECKING:
    from trunkline.limits.table import Limits

_ID: Final = "[0-9a-f]{24}"
_FOLDERS: Final = "|".join(
    portable.contents
    for portable in PORTABLE
    if portable.contents is not None and portable.contents not in ("rows", "versions")
)
_NAMES: Final = re.compile(
    rf"manifest\.json|resources/(?:{'|'.join(BY_NAME)})\.jsonl|rows/{_ID}\.jsonl"
    rf"|versions/{_ID}/(?:ExperienceEndpoint|ExperienceView)\.jsonl"
    + (rf"|(?:{_FOLDERS})/{_ID}" if _FOLDERS else "")
)
_MANIFEST: Final = msgspec.json.Decoder(Manifest)
_LINE: Final = msgspec.json.Decoder(Line)


class Numbered(NamedTuple):
    """A line and its number in its entry, from 1."""

    number: int
    raw: bytes | Line

    def parse(self) -> Line:
        """The line. Raises `Invalid`."""
        if isinstance(self.raw, Line):
            return self.raw
        try:
            line = _LINE.decode(self.raw)
        except msgspec.ValidationError as error:
            raise Invalid(f"is not a line of a bundle: {error}.") from None
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            raise Invalid(f"is not JSON: {error}.") from None
        check_nesting(line.body, "body")
        check_nesting(line.more, "more")
        return line


class Source(Protocol):
    """Where the resources come from."""

    manifest: Manifest

    def names(self) -> Iterable[str]:
        """The names of all entries."""
        ...

    def lines(self, name: str) -> Iterator[Numbered]:
        """The lines of an entry, none if there is no such entry."""
        ...

    def content(self, name: str) -> Iterator[bytes]:
        """The content of an entry, in pieces."""
        ...


class Bundle:
    """The zip of an export. Memory does not grow with its size. One thread at a time may use it."""

    def __init__(self, file: BinaryIO, limits: Limits) -> None:
        self._limits = limits
        self._zip = ZipReader(file, limits, lambda name: _NAMES.fullmatch(name) is not None)
        self.manifest = self._manifest()

    def names(self) -> Iterable[str]:
        return self._zip.entries

    def lines(self, name: str) -> Iterator[Numbered]:
        if name not in self._zip.entries:
            return
        rest, number, most = b"", 0, self._limits.bundle_line_bytes_max
        for piece in self._zip.pieces(name):
            *complete, rest = (rest + piece).split(b"\n")
            for raw in complete:
                number += 1
                if raw.strip():
                    yield Numbered(number, raw)
            if len(rest) > most:
                raise PayloadTooLarge(f"importBundle: {name}: line {number + 1} has more than {most} bytes.")
        if rest.strip():
            yield Numbered(number + 1, rest)

    def content(self, name: str) -> Iterator[bytes]:
        return self._zip.pieces(name)

    def _manifest(self) -> Manifest:
        if MANIFEST not in self._zip.entries:
            raise Invalid(f"importBundle: has no {MANIFEST}; give the zip that an export made.")
        raw, most = b"", self._limits.body_bytes_max
        for piece in self._zip.pieces(MANIFEST):
            raw += piece
            if len(raw) > most:
                raise PayloadTooLarge(f"importBundle: {MANIFEST} has more than {most} bytes.")
        try:
            found = msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            raise Invalid(f"importBundle: {MANIFEST} is not JSON: {error}.") from None
        version = found.get("version") if isinstance(found, dict) else None
        if type(version) is int and version > VERSION:
            raise Invalid(
                f"importBundle: has the version {version} of the format, and this server reads up to {VERSION}; "
                "import it into a newer server."
            )
        try:
            return _MANIFEST.decode(raw)
        except msgspec.ValidationError as error:
            raise Invalid(f"importBundle: {MANIFEST}: {error}.") from None


class Memory:
    """A source in memory: lines by entry, such as those of a template."""

    def __init__(self, manifest: Manifest, entries: Mapping[str, list[Line]]) -> None:
        self.manifest = manifest
        self._entries = entries

    def names(self) -> Iterable[str]:
        return self._entries

    def lines(self, name: str) -> Iterator[Numbered]:
        for number, line in enumerate(self._entries.get(name, ()), 1):
            yield Numbered(number, line)

    def content(self, name: str) -> Iterator[bytes]:
        raise Invalid(f"{name}: only a bundle in a file has contents.")


def walk_texts(value: Any, change: Any) -> Any:
    """The value with `change` applied to each text in it, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): walk_texts(each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [walk_texts(each, change) for each in value]
    return value
