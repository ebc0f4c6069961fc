"""Zips that somebody made to do harm are refused with a sentence, before they cost memory."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.portability.bundles.reader import Bundle
from trunkline.limits.table import Limits

LIMITS = replace(Limits(), bundle_entries_max=100, bundle_unpacked_bytes_max=50_000_000)
MANIFEST = (
    b'{"format":"trunkline-application","version":1,"exportedAt":"2026-01-01T00:00:00Z",'
    b'"applicationId":"00000000000000000000000a","application":{"name":"a"},"resources":{"Device":2}}'
)
DEVICES = b'{"id":"%024x","body":{"name":"a"}}\n{"id":"%024x","body":{"name":"b"}}\n' % (1, 2)
ROWS = f"rows/{1:024x}.jsonl"


def packed(entries: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytearray:
    """A zip with a manifest and these entries."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("manifest.json", MANIFEST)
        for name, content in entries.items():
            archive.writestr(name, content)
    return bytearray(file.getvalue())


def read_all(raw: bytes, limits: Limits = LIMITS) -> int:
    """The number of bytes of all entries, and lines parsed."""
    bundle = Bundle(io.BytesIO(raw), limits)
    size = 0
    for name in bundle.names():
        for line in bundle.lines(name) if name.endswith(".jsonl") else ():
            line.parse()
        size += sum(map(len, bundle.content(name)))
    return size


def directory(raw: bytes) -> int:
    """The place of the first entry of the directory."""
    return raw.index(b"PK\x01\x02")


def patched(raw: bytearray, offset: int, form: str, value: int) -> bytearray:
    """The zip with a field of the last entry of its directory changed."""
    struct.pack_into(form, raw, raw.rindex(b"PK\x01\x02") + offset, value)
    return raw


def test_what_an_export_makes_is_read() -> None:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raw = bytes(packed({"resources/Device.jsonl": DEVICES}, method))
        assert read_all(raw) == len(MANIFEST) + len(DEVICES)
        bundle = Bundle(io.BytesIO(raw), LIMITS)
        assert [line.parse().body["name"] for line in bundle.lines("resources/Device.jsonl")] == ["a", "b"]


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../../x",
        "resources/../manifest.json",
        "resources\\Device.jsonl",
        "resources/Secret.jsonl",
        "C:/x",
        "resources/",
        "Resources/Device.jsonl",
        "rows/1.jsonl",
        "r\u00e9sources/Device.jsonl",
        "manifest.json\x00.txt",
    ],
)
def test_an_entry_that_is_not_of_a_bundle_is_refused(name: str) -> None:
    raw = packed({"resources/Device.jsonl": b""})
    file = io.BytesIO(raw)
    with zipfile.ZipFile(file, "a") as archive:
        info = zipfile.ZipInfo("x")
        info.filename = info.orig_filename = name
        archive.writestr(info, b"x")
    with pytest.raises(Invalid, match="not part of a bundle"):
        read_all(file.getvalue())


def _same_name() -> bytes:
    file = io.BytesIO(packed({"resources/Device.jsonl": DEVICES}))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(file, "a") as archive:
        archive.writestr("resources/Device.jsonl", b"")
    return file.getvalue()


def _symlink() -> bytes:
    file = io.BytesIO(packed({}))
    with zipfile.ZipFile(file, "a") as archive:
        info = zipfile.ZipInfo("resources/Device.jsonl")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, b"/etc/passwd")
    return file.getvalue()


def _overlap() -> bytes:
    """Two entries that share their bytes."""
    raw = packed({"resources/Device.jsonl": DEVICES, "resources/Webhook.jsonl": DEVICES})
    first = bytes(raw).index(b"resources/Device.jsonl") - 30
    return bytes(patched(raw, 42, "<L", first))


def _bytes_behind(entry: bytes) -> bytes:
    raw = packed({"resources/Device.jsonl": entry})
    return bytes(raw) + b"\x00" * 10


Zip = Callable[[], bytes]

HOSTILE: dict[str, tuple[Zip, str]] = {
    "no zip": (lambda: b"<html>" * 100, "not a zip"),
    "empty": (lambda: b"", "not a zip"),
    "cut": (lambda: bytes(packed({"resources/Device.jsonl": DEVICES}))[:-30], "not a zip"),
    "the same name": (_same_name, "twice"),
    "a link": (_symlink, "link"),
    "overlapping": (_overlap, "overlap"),
    "bytes behind": (lambda: _bytes_behind(DEVICES), "behind the end"),
    "encrypted": (lambda: bytes(patched(packed({ROWS: DEVICES}), 8, "<H", 1)), "encrypted"),
    "another method": (lambda: bytes(packed({ROWS: DEVICES}, zipfile.ZIP_LZMA)), "method"),
    "a false checksum": (lambda: bytes(patched(packed({ROWS: DEVICES}), 16, "<L", 1)), "damaged"),
    "less than it says": (lambda: bytes(patched(packed({ROWS: DEVICES}), 24, "<L", 9999)), "damaged"),
    "more than it says": (lambda: bytes(patched(packed({ROWS: DEVICES}), 24, "<L", 9)), "more bytes"),
    "too packed": (lambda: bytes(packed({ROWS: b"\n" * 5_000_000})), "times its size"),
    "a place that is none": (
        lambda: bytes(patched(packed({ROWS: DEVICES}), 42, "<L", 3)),
        "overlap|directory says",
    ),
    "too many": (lambda: bytes(packed({f"rows/{n:024x}.jsonl": b"" for n in range(101)})), "entries"),
    "a long line": (
        lambda: bytes(packed({ROWS: bytes(range(32, 127)) * 50_000}, zipfile.ZIP_STORED)),
        "line 1 has",
    ),
    "deep JSON": (
        lambda: bytes(packed({ROWS: b'{"body":{"a":' + b"[" * 9000 + b"]" * 9000 + b"}}"})),
        "JSON|nests",
    ),
    "no object": (lambda: bytes(packed({ROWS: b"[1]"})), "not a line"),
    "unknown members": (lambda: bytes(packed({ROWS: b'{"body":{},"x":1}'})), "not a line"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_zip_is_refused_with_a_sentence(name: str) -> None:
    make, sentence = HOSTILE[name]
    raw = make()
    with pytest.raises((Invalid, PayloadTooLarge), match=sentence):
        read_all(raw)


def test_all_bytes_together_are_bounded() -> None:
    noise = bytes(range(256)) * 100
    raw = bytes(packed({f"rows/{n:024x}.jsonl": noise for n in range(10)}, zipfile.ZIP_STORED))
    with pytest.raises(PayloadTooLarge, match="unpacked"):
        read_all(raw, replace(LIMITS, bundle_unpacked_bytes_max=200_000))


def test_a_million_entries_are_refused_before_they_are_in_memory() -> None:
    one = bytes(packed({}))
    entry = one[directory(one) : one.rindex(b"PK\x05\x06")]
    many = entry * 60_000
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 60_000, 60_000, len(many), directory(one), 0)
    raw = one[: directory(one)] + many + end
    tracemalloc.start()
    with pytest.raises(PayloadTooLarge, match="60000 entries"):
        read_all(raw)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(raw) + 1_000_000


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        (b"{", "not JSON"),
        (b"[]", "manifest.json"),
        (MANIFEST.replace(b'"version":1', b'"version":2'), "newer server"),
        (MANIFEST.replace(b"trunkline-", b"other-"), "format"),
        (MANIFEST.replace(b'"Device":2', b'"Secret":2'), "Secret"),
        (MANIFEST.replace(b'"name":"a"', b'"nome":"a"'), "nome|name"),
    ],
)
def test_a_manifest_that_is_none_is_refused(manifest: bytes, sentence: str) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("manifest.json", manifest)
    with pytest.raises(Invalid, match=sentence):
        read_all(file.getvalue())


@given(st.data())
def test_a_changed_zip_is_read_or_refused(data: Any) -> None:
    raw = packed({"resources/Device.jsonl": DEVICES, ROWS: DEVICES * 20})
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        kind = data.draw(st.sampled_from(["flip", "cut", "double"]))
        if kind == "flip":
            raw[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del raw[at : at + data.draw(st.integers(1, 64))]
        else:
            raw[at:at] = raw[at : at + 40]
        if not raw:
            break
    try:
        read_all(bytes(raw))
    except (Invalid, PayloadTooLarge) as refusal:
        assert refusal.message.endswith(".")  # noqa: PT017 - a refusal is as good as none
