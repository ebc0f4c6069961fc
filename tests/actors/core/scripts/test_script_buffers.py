"""`Buffer` of scripts, compared with what Python's codecs and `struct` make of the same bytes."""

from __future__ import annotations

import base64
import random
import struct
from typing import Any

import pytest

from tests.actors.core.scripts.pools import failure, running_pool, value

pytestmark = pytest.mark.slow

BYTES = bytes(random.Random(7).randbytes(64))
TEXTS = ("", "a", "plain", "ä€\U0001f600", "\x00\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff")
FORMATS = {
    "UInt8": "B", "Int8": "b", "UInt16": "H", "Int16": "h", "UInt32": "I", "Int32": "i", "Float": "f", "Double": "d",
}  # fmt: skip


async def test_texts_in_all_encodings() -> None:
    async with running_pool() as pool:
        script = "return payload.map((text) => Buffer.from(text).toJSON().data)"
        assert await value(pool, script, TEXTS) == [list(text.encode()) for text in TEXTS]
        script = "return payload.map((bytes) => Buffer.from(bytes).toString())"
        assert await value(pool, script, [list(text.encode()) for text in TEXTS]) == list(TEXTS)
        names = "['hex', 'base64', 'base64url', 'latin1', 'binary']"
        script = f"return {names}.map((name) => Buffer.from(payload).toString(name))"
        latin = BYTES.decode("latin1")
        expected = [
            BYTES.hex(),
            base64.b64encode(BYTES).decode(),
            base64.urlsafe_b64encode(BYTES).decode().rstrip("="),
            latin,
            latin,
        ]
        assert await value(pool, script, list(BYTES)) == expected
        script = "return payload.map(([text, name]) => [...Buffer.from(text, name)])"
        given = ("HEX", "base64", "base64", "latin1", "binary")
        assert await value(pool, script, list(zip(expected, given, strict=True))) == [list(BYTES)] * 5
        script = "return [Buffer.from(payload, 'utf16le').toString('ucs2'), Buffer.from(payload).toString('ascii')]"
        assert await value(pool, script, "aä") == ["aä", "aC$"]


async def test_bytes_that_are_no_utf8_are_replaced_as_by_python() -> None:
    pieces = [
        b"\x80",
        b"\xc3",
        b"\xe2\x82",
        b"\xf0\x9f\x98",
        b"\xed\xa0\x80",
        b"\xc0\xaf",
        b"\xf4\x90\x80\x80",
        b"\xff",
    ]
    cases = [
        *pieces,
        *(piece + b"a" for piece in pieces),
        *(random.Random(n).randbytes(30) for n in range(200)),
    ]
    async with running_pool() as pool:
        script = "return payload.map((bytes) => Buffer.from(bytes).toString('utf-8'))"
        assert await value(pool, script, [list(case) for case in cases]) == [
            case.decode("utf-8", "replace") for case in cases
        ]
        assert await value(pool, "return [...Buffer.from('a\\ud800b')]") == list("a\ufffdb".encode())


async def test_lenient_texts_as_in_node() -> None:
    async with running_pool() as pool:
        script = "return payload.map(([text, name]) => Buffer.from(text, name).toString('latin1'))"
        cases = [
            ("aGV s\nbG8", "base64"),
            ("aGVsbG8=junk", "base64"),
            ("-_-_", "base64"),
            ("616z62", "hex"),
            ("616", "hex"),
        ]
        assert await value(pool, script, cases) == ["hello", "hello", "\xfb\xff\xbf", "a", "a"]


async def test_numbers_are_read_and_written() -> None:
    async with running_pool() as pool:
        for name, code in FORMATS.items():
            for order in ("LE", "BE") if struct.calcsize(code) > 1 else ("",):
                form = {"LE": "<", "BE": ">", "": "<"}[order] + code
                numbers: list[Any] = [struct.unpack_from(form, BYTES, at)[0] for at in range(40)]
                script = f"""
                    const from = Buffer.from(payload), to = Buffer.alloc(64)
                    const numbers = Array.from({{length: 40}}, (_, at) => from.read{name}{order}(at))
                    const end = to.write{name}{order}(numbers[3], 5)
                    return [numbers, [...to.subarray(5, end)]]
                    """
                read, written = await value(pool, script, list(BYTES))
                assert [struct.pack(form, number or 0) for number in read] == [
                    struct.pack(form, number if number == number and abs(number) != float("inf") else 0)
                    for number in numbers
                ]
                assert bytes(written) == struct.pack(form, numbers[3]) or numbers[3] != numbers[3]
        numbers_of_b = "[b.readUIntBE(0, 3), b.readIntLE(1, 6), b.readInt8(), b.readUint16BE(2)]"
        script = f"const b = Buffer.from(payload); return {numbers_of_b}"
        expected = [
            int.from_bytes(BYTES[:3], "big"),
            int.from_bytes(BYTES[1:7], "little", signed=True),
            int.from_bytes(BYTES[:1], "big", signed=True),
            int.from_bytes(BYTES[2:4], "big"),
        ]
        assert await value(pool, script, list(BYTES)) == expected
        for script in (
            "readUInt8(4)",
            "readUInt32LE(1)",
            "readInt16BE(-1)",
            "readFloatLE(0.5)",
            "writeDoubleBE(1, 0)",
        ):
            assert (await failure(pool, f"Buffer.alloc(4).{script}")).name == "RangeError"


async def test_parts_of_buffers() -> None:
    script = """
        const whole = Buffer.concat([Buffer.from("abc"), Buffer.alloc(2, "xy"), Buffer.from([0x141, 66])])
        const part = whole.slice(1, -1)
        part[0] = 0x2d
        const copy = Buffer.from(whole)
        copy[0] = 0
        const target = Buffer.alloc(3)
        return {
            whole: whole.toString(), part: part.toString("utf8"), piece: whole.toString("latin1", 1, 3),
            json: JSON.stringify(Buffer.from("a")),
            lengths: [whole.length, Buffer.byteLength("ä"), Buffer.byteLength("ff", "hex")],
            is: [Buffer.isBuffer(part), Buffer.isBuffer(new Uint8Array(1)), part instanceof Uint8Array],
            equals: [whole.equals(Buffer.from(whole)), Buffer.compare(Buffer.from("a"), Buffer.from("b"))],
            copied: [whole.copy(target, 1, 3), target.toString("latin1")],
            written: [target.write("hé", 1), [...target]],
            short: Buffer.concat([whole, whole], 3).toString(), filled: Buffer.alloc(5).fill("ab").toString(),
            again: Buffer.from(JSON.parse(JSON.stringify(Buffer.from("a")))).toString(), size: Buffer.alloc(2).length,
        }
        """
    async with running_pool() as pool:
        assert await value(pool, script) == {
            "whole": "a-cxyAB",
            "part": "-cxyA",
            "piece": "-c",
            "json": '{"type":"Buffer","data":[97]}',
            "lengths": [7, 2, 1],
            "is": [True, False, True],
            "equals": [True, -1],
            "copied": [2, "\x00xy"],
            "written": [2, [0, 0x68, 0xC3]],
            "short": "a-c",
            "filled": "ababa",
            "again": "a",
            "size": 2,
        }
        assert (await failure(pool, "Buffer.from('a', 'utf7')")).message == "Unknown encoding: utf7"
        assert (await failure(pool, "Buffer.from(7)")).name == "TypeError"
        assert (await failure(pool, "Buffer.alloc(-1)")).name == "RangeError"
