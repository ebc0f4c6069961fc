"""What a script of a workflow finds and gives: its payload, its result, its errors, its console."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.actors.core.scripts.pools import APP, failure, running_pool, value
from trunkline.actors.core.formulas.price import Budget
from trunkline.actors.core.scripts.protocol import LogLine

pytestmark = pytest.mark.slow

RESULTS: list[tuple[str, Any, Any]] = [
    # The payload is changed, or a returned value takes its place.
    ("payload.b = payload.a + 1", {"a": 1}, {"a": 1, "b": 2}),
    ("delete payload.a", {"a": 1}, {}),
    ("return", {"a": 1}, {"a": 1}),
    ("return undefined; payload.never = 1", {"a": 1}, {"a": 1}),
    ("return null", {"a": 1}, None),
    ("return 0", {"a": 1}, 0),
    ("return payload.list.map((each) => each * 2)", {"list": [1, 2]}, [2, 4]),
    ("payload = {other: 1}", {"a": 1}, {"a": 1}),
    ("", "text", "text"),
    # As JSON: what it lacks is left out or null.
    ("return [NaN, Infinity, undefined, () => 1, Symbol('s')]", None, [None] * 5),
    ("return {f() {}, u: undefined, kept: 1}", None, {"kept": 1}),
    ("return new Date(0)", None, "1970-01-01T00:00:00.000Z"),
    ("return payload", [math.nan, math.inf, 1.5, 5.0, -0.0], [None, None, 1.5, 5, 0]),
    # Text of any kind, both ways.
    ("return payload + '\\u{1F600}'", 'ä "\\" \x00 \u2028 \U0001f600', 'ä "\\" \x00 \u2028 \U0001f600\U0001f600'),
    ("return ['\\ud800', 'a\\udc00b', '\\\\ud800']", None, ["\ufffd", "a\ufffdb", "\\ud800"]),
    ("return {'\\udfff': '\\\\\\ud800'}", None, {"\ufffd": "\\\ufffd"}),
    ("return '\\0 in a script'", None, "\0 in a script"),
    # The body of a function.
    ("// a comment at the end", 1, 1),
    ("return typeof this + typeof arguments + arguments.length", 1, "objectobject1"),
    ("'use strict'; return typeof this", 1, "undefined"),
    ("const {a = 2, ...rest} = payload; return a ?? rest?.b", {"b": 3}, 2),
    ("return typeof require + typeof process + typeof std + typeof os + typeof fetch", 1, "undefined" * 5),
]  # fmt: skip


async def test_the_payload_after_a_script() -> None:
    async with running_pool() as pool:
        for script, payload, expected in RESULTS:
            assert await value(pool, script, payload) == expected, script
        assert pool.started == 1


async def test_a_long_payload_comes_and_goes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    inner = Budget.in_thread

    def in_thread(budget: Budget, work: Any, look: Any) -> Any:
        threads.append("one")
        return inner(budget, work, look)

    monkeypatch.setattr(Budget, "in_thread", in_thread)
    payload = {f"key{at}": [at, {"text": "x"}] for at in range(20_000)}
    async with running_pool() as pool:
        script = "console.log('told'); payload.more = {a: [payload.key7]}; return payload"
        result = await pool.call(script, payload, owner=APP)
        assert result.value == {**payload, "more": {"a": [[7, {"text": "x"}]]}}
        assert result.logs == (LogLine("log", "told"),)
        assert len(threads) == 2
        assert await value(pool, "return 1", None) == 1
        assert len(threads) == 2


ERRORS: list[tuple[str, str, str, int | None]] = [
    ("payload.a.b.c = 1", "TypeError", "cannot read property 'b' of undefined", 1),
    ("\n\nfoo.bar()", "ReferenceError", "foo is not defined", 3),
    ("const a = 1\n  throw new RangeError('too far')", "RangeError", "too far", 2),
    ("let a = 1;\nlet x y;", "SyntaxError", "expecting ';'", 2),
    ("}", "SyntaxError", "", 2),
    ("function f() {\n  return g()\n}\nf()", "ReferenceError", "g is not defined", 2),
    ("throw null", "Error", "null", None),
    ("throw undefined", "Error", "undefined", None),
    ("throw 'only text'", "Error", "only text", None),
    ("throw {code: 7}", "Error", '{"code":7}', None),
    ("throw {name: 'Own', message: 'made by hand', stack: 7}", "Own", "made by hand", None),
    ("class Odd extends Error {}; Odd.prototype.name = 'Odd'; throw new Odd('m')", "Odd", "m", 1),
    ("return () => 1", "FunctionNodeTypeError", "The result is a function, which JSON does not have.", None),
    ("return Symbol('s')", "FunctionNodeTypeError", "The result is a symbol, which JSON does not have.", None),
    ("return 1n", "FunctionNodeTypeError", "The result cannot be written as JSON: BigInt", None),
    ("return {deep: [1n]}", "FunctionNodeTypeError", "The result cannot be written as JSON: BigInt", None),
    ("payload.self = payload", "FunctionNodeTypeError", "The result cannot be written as JSON: circular", None),
    ("return {get a() { throw new Error('no') }}", "FunctionNodeTypeError", "The result cannot be written as", None),
    ("return (async () => 1)()", "FunctionNodeTypeError", "The script returned a promise", None),
    ("let o = {}; for (let i = 0; i < 100; i++) o = {o}; return o", "FunctionNodeTypeError", "The result nests", None),
    ("return Buffer.alloc(1).readUInt16BE(0)", "RangeError", 'The value of "offset" is out of range', 1),
]  # fmt: skip


async def test_the_errors_of_scripts() -> None:
    async with running_pool() as pool:
        for script, name, message, line in ERRORS:
            error = await failure(pool, script, {})
            assert (error.name, error.line) == (name, line), script
            assert error.message.startswith(message), script
            assert "input" not in error.stack, script
        assert "f (script:2:" in (await failure(pool, ERRORS[5][0])).stack
        deep = "let o = {}; for (let i = 0; i < 99; i++) o = {o}; o.text = '[[[{{{'.repeat(99); return o"
        assert await value(pool, deep)
        assert pool.started == 1


async def test_the_console() -> None:
    script = """
        console.log("text", 1, {a: [1]}, null, undefined, new TypeError("e"), Symbol("s"), 2n)
        console.info(); console.warn("w"); console.error("e"); console.debug("\\ud800")
        const cycle = {}; cycle.cycle = cycle
        console.log(cycle, Object.create(null), () => 1)
        """
    async with running_pool() as pool:
        result = await pool.call(script, {}, owner=APP)
        assert result.logs == (
            LogLine("log", 'text 1 {"a":[1]} null undefined TypeError: e Symbol(s) 2'),
            LogLine("info", ""),
            LogLine("warn", "w"),
            LogLine("error", "e"),
            LogLine("debug", "\ufffd"),
            LogLine("log", "(cannot be shown) {} () => 1"),
        )
        error = await failure(pool, "console.log('before'); throw new Error('now')")
        assert error.logs == (LogLine("log", "before"),)


async def test_the_console_is_bounded_and_says_so() -> None:
    async with running_pool(script_log_bytes_max=1000) as pool:
        result = await pool.call("for (let i = 0; i < 1e4; i++) console.log('ä'.repeat(92))", 1, owner=APP)
        assert [line.text for line in result.logs[:-1]] == ["ä" * 92] * 5
        assert result.logs[-1] == LogLine("warn", "Further messages of the script are left out.")


async def test_the_sizes_of_script_payload_and_result() -> None:
    async with running_pool(script_payload_bytes_max=1000, script_length_max=100) as pool:
        assert await value(pool, "return payload", "x" * 998) == "x" * 998
        assert await value(pool, "return 'ä'.repeat(499)") == "ä" * 499
        for script, payload in (
            ("", "x" * 999),
            ("return 'x'.repeat(999)", 1),
            ("return 'ä'.repeat(500)", 1),
        ):
            error = await failure(pool, script, payload)
            assert (error.name, error.message[-26:]) == ("PayloadTooLarge", "is larger than 1000 bytes.")
        error = await failure(pool, "/".ljust(101, "/"))
        assert error.message == "The script has 101 characters; 100 are allowed."


async def test_large_values_pass_both_ways() -> None:
    payload = {
        "list": list(range(300_000)),
        "text": "x" * 1_000_000,
        "pairs": [{"a": i} for i in range(50_000)],
    }
    async with running_pool() as pool:
        assert await value(pool, "payload.list.push(1)", payload) == payload | {"list": [*payload["list"], 1]}
