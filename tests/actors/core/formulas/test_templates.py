"""Templates write what Handlebars writes, keep types where one path stands alone, and stay within their bounds."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.actors.core.formulas.template_cases import NOW_MS, Writer
from trunkline.actors.core.formulas import dates
from trunkline.actors.core.formulas.errors import EvaluationError, FormulaError
from trunkline.actors.core.formulas.expressions import compile_expression
from trunkline.actors.core.formulas.number_formats import format_number
from trunkline.actors.core.formulas.price import WHOLE_STEPS
from trunkline.actors.core.formulas.template_functions import HELPERS
from trunkline.actors.core.formulas.template_syntax import NESTING_MAX
from trunkline.actors.core.formulas.templates import compile_template, compile_variable
from trunkline.actors.core.formulas.values import UNDEFINED

CASES = json.loads((Path(__file__).parent / "template_cases.json").read_text())
PAYLOAD: dict[str, Any] = {
    "time": "2024-02-29T13:05:09.250Z",
    "applicationName": "Plant <1>",
    "data": {
        "temperature": 21.5,
        "count": 3,
        "on": True,
        "nothing": None,
        "name": 'Pump "A" & B',
        "list": [1, "two", {"three": 3}],
        "object": {"a": 1, "b": [2]},
        "rows": [{"key": "a", "value": 1}, {"key": "b", "value": 2, "deep": {"x": 9}}],
        "place": "39.1,-84.5",
        "max": 7,
        "form": "{{data.count}} of {{applicationName}}",
        "self": "{{evalExpression '{{evalExpression data.self}}'}}",
        "1": "one",
        "long": "x" * 32_768,
    },
}


def text(template: str, payload: Any = PAYLOAD) -> str:
    return compile_template(template).text(payload, NOW_MS)


def test_writes_what_the_original_writes() -> None:
    assert len(CASES["templates"]) > 1000
    for template, number, expected in CASES["templates"]:
        assert text(template, CASES["payloads"][number]) == expected, template


def test_formats_numbers_as_the_original() -> None:
    for form, value, expected in CASES["numbers"]:
        assert format_number(value, form or "") == expected or not form, (form, value)


def test_formats_dates_as_the_original() -> None:
    for form, at, zone, expected in CASES["dates"]:
        assert dates.format_date(at, form, tz=zone) == expected, (form, at, zone)


def test_tells_distances_of_time_as_the_original() -> None:
    for away, expected in CASES["relative"]:
        assert dates.format_relative(NOW_MS + away, NOW_MS) == expected, away


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        ("{{data.temperature}} °C", "21.5 °C"),
        ("{{applicationName}} {{{applicationName}}}", "Plant &lt;1&gt; Plant <1>"),
        ("{{data.missing}}|{{data.nothing}}|{{data.on}}", "||true"),
        ("{{data.list.[1]}} {{data.list}} {{data.object}}", "two 1,two,[object Object] [object Object]"),
        # A brace behind a value, as JSON has it; the original refuses this one.
        ('{"a":{"t":{{data.temperature}}}}', '{"a":{"t":21.5}}'),
        ('{ "n": {{jsonEncode data.name}} }', '{ "n": "Pump \\"A\\" & B" }'),
        ("{{jsonEncode data.object ' '}}", '{\n "a": 1,\n "b": [\n  2\n ]\n}'),
        ("{{jsonEncode data.missing}}|{{jsonEncode data.nothing}}", "|null"),
        # A field with the name of a helper is the field; with an argument it is the helper.
        ("{{#with data}}{{max}} {{max 1 9}}{{/with}}", "7 9"),
        ("{{defaultTo data.missing 'none'}} {{defaultTo data.count 0}}", "none 3"),
        ("{{typeof data.list}} {{typeof data.missing}} {{typeof data.nothing}}", "array undefined null"),
        ("{{length data.list}} {{length data.object}} {{length data.name}} {{length data.on}}", "3 2 12 0"),
        ("{{last data.list.[1]}} {{last (array 1 2)}}", "o 2"),
        ("{{join (array 1 'b' data.missing) '; '}}", "1; b; "),
        ("{{titleCase 'the PUMP room'}} {{trim '  x '}}", "The Pump Room x"),
        ("{{substring '😀abc' 2 4}}", "ab"),
        ("{{scaleLinear 0 1023 0 5 512}}", "2.5024437927663734"),
        ("{{divide 1 0}} {{divide 0 0}} {{add '1' '2'}} {{floor -0.5}}", "Infinity NaN 3 -1"),
        ("{{jsonEncode (merge data.object (obj b='c' d=1))}}", '{"a":1,"b":"c","d":1}'),
        ("{{lookup data.object 'a'}} {{lookup data.list 1}} {{lookup data data.list.[0]}}", "1 two one"),
        ("{{indexByKey data.rows 'b'}} {{indexByKey data.rows 'c'}}", "1 -1"),
        ("{{valueByKey data.rows 'b'}} {{valueByKey data.rows 9 'deep.x' 'key'}}", "2 b"),
        ("{{encodeBase64 'Grüße'}} {{decodeBase64 'R3LDvMOfZQ'}}", "R3LDvMOfZQ&#x3D;&#x3D; Grüße"),
        ("{{{encodeURI 'a b/c?d=é&'}}} {{encodeURIComponent 'a b/c'}}", "a%20b/c?d=%C3%A9& a%20b%2Fc"),
        ("{{{decodeURI '%2F%20%C3%A9'}}} {{{decodeURIComponent '%2F%20'}}}.", "%2F é / ."),
        ("{{{queryStringEncode (obj a='x y' b=data.list)}}}", "a=x%20y&b=1&b=two&b="),
        ("{{#match data.name '^Pump'}}y{{/match}}{{#match data.name '(?i)^pump \"b'}}y{{else}}n{{/match}}", "yn"),
        ("{{#includes data.list 'two'}}y{{/includes}}{{#includes data.object 1}}y{{/includes}}", "yy"),
        ("{{#includes data.name 'Pump'}}y{{/includes}}{{#includes data.count 3}}y{{/includes}}", "y"),
        ("{{#eq data.count '3'}}loose{{else gt data.count 2}}more{{else}}less{{/eq}}", "more"),
        ("{{#if (eq (lower 'ADMIN') 'admin')}}Hello{{/if}}", "Hello"),
        ("{{format data.count '.2f'}} {{format 1234567.8912}} {{format 0.25 '.0%'}}", "3.00 1,234,567.891 25%"),
        ("{{format time 'YYYY'}} {{format 1709211909250 'YYYY'}} {{format 'Pump' '.2f'}}", "2024 2024 Pump"),
        ("{{formatDate time 'dddd Do MMMM, HH:mm z' tz='Europe/Berlin'}}", "Thursday 29th February, 14:05 CET"),
        ("{{formatDate time 'D. MMMM' locale='de'}} {{formatDate data.name}}", "29. Februar Invalid date"),
        ("{{formatDate time}}", "2024-02-29T13:05:09+00:00"),
        ("{{currentDateTime 'YYYY-MM-DD'}} {{currentDateTime 'x'}}", f"2024-11-07 {NOW_MS}"),
        ("{{formatDateRelative time}} {{formatDateRelative time '2024-02-29'}}", "8 months ago in 13 hours"),
        ("{{floor (gpsDistance data.place '40.1,-84.5')}}", "111195"),
        ("{{gpsDistance data.place 'nowhere'}} {{gpsDistance data.nothing data.place}}", "false false"),
        ("{{#if (gpsDistance data.place '')}}y{{else}}n{{/if}}", "n"),
        ("{{gpsIsPointInside data.place (array '38,-85' '40,-85' '40,-84' '38,-84')}}", "true"),
        ("{{gpsIsPointInside '41,-84.5' (array '38,-85' '40,-85' '40,-84' '38,-84')}}", "false"),
        ("{{formatGps data.place 'decimal' 2}} {{formatGps 'no place'}}", "39.10,-84.50 no place"),
        ("{{{template data.form}}} {{template '{{a}}' data.object}}", "3 of Plant &lt;1&gt; 1"),
        ("{{template data.nothing}}|{{template data.empty}}|{{template null}}", "||"),
        ("{{evalExpression '{{data.count}} * 2 + {{length data.list}}'}}", "9"),
        ("{{#if (evalExpression '{{a}} > 1' data.object)}}y{{else}}n{{/if}}", "n"),
        ("{{typeof (evalExpression '{{data.count}} == 3')}}", "boolean"),
        ("{{#each data.rows as |row place|}}{{place}}{{row.key}}{{@root.data.count}} {{/each}}", "0a3 1b3 "),
    ],
)  # fmt: skip
def test_writes(template: str, expected: str) -> None:
    assert text(template) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{data.temperature}}", 21.5),
        ("{{ data.list }}", PAYLOAD["data"]["list"]),
        ("{{{data.on}}}", True),
        ("{{data.nothing}}", None),
        ("{{data.missing}}", UNDEFINED),
        ("{{this}}", PAYLOAD),
        ("{{data.count}} ", "3 "),
        ("{{add data.count 1}}", "4"),
        ("{{#if data.on}}{{data.count}}{{/if}}", "3"),
    ],
)
def test_a_path_alone_keeps_its_type(template: str, expected: Any) -> None:
    assert compile_template(template).value(PAYLOAD) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{data.temperature}}", 21.5),
        ("{{add data.count 1}}", 4),
        ("{{lower 'A'}}", "a"),
        ("{{array data.count}}", [3]),
        ("{{@root.data.on}}", True),
        ("{{evalExpression '{{data.count}} + 1'}}", 4),
        ("{{'time'}}", PAYLOAD["time"]),
    ],
)
def test_braces_in_an_expression_keep_the_type_of_helpers_too(template: str, expected: Any) -> None:
    assert compile_variable(template)(PAYLOAD) == expected


def test_an_expression_takes_helpers_in_braces() -> None:
    condition = compile_expression(
        "{{lower data.name}} === 'pump' && {{format data.count '.1f'}} == 3", compile_variable
    )
    assert condition({"data": {"name": "PUMP", "count": 3}}) is True


@pytest.mark.parametrize("template", ["{{a}} ", "", "{{#if a}}{{/if}}", "{{! a }}", "{{a}}{{b}}"])
def test_braces_in_an_expression_are_one_value(template: str) -> None:
    with pytest.raises(FormulaError):
        compile_variable(template)


def test_json_of_a_template() -> None:
    template = compile_template('{"n": {{jsonEncode data.name}}, {{#if data.on}}"on": true{{/if}}}')
    assert template.json(PAYLOAD) == {"n": 'Pump "A" & B', "on": True}
    for wrong in ('{"n": {{data.name}} }', "", "NaN", "[" * 5000):
        with pytest.raises(EvaluationError, match="not valid JSON"):
            compile_template(wrong).json(PAYLOAD)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("a\n {{foo 1}}", "Line 2, column 4: there is no helper foo."),
        ("{{#foo 1}}{{/foo}}", "Line 1, column 4: there is no helper foo."),
        ("{{if a}}", "if is a block"),
        ("{{#if a}}x", "the block if is not closed"),
        ("{{#if a}}x{{/unless}}", "the block if is closed by unless"),
        ("{{/if}}", "if is closed but was not opened"),
        ("{{else}}", "an else stands outside of a block"),
        ("{{#if a}}{{else}}{{else}}{{/if}}", "has an else already"),
        ("{{#if a b}}{{/if}}", "takes one argument, not 2"),
        ("{{#upper a}}{{/upper}}", "cannot open a block"),
        ("{{#if a as |x|}}{{/if}}", "has no parameters"),
        ("{{add 1}}", "the helper add takes at least 2 arguments, not 1"),
        ("{{a", "the braces are not closed"),
        ("{{{a}}", "expected }}}"),
        ("{{add (add 1 2) (3}}", "expected a closing parenthesis"),
        ("{{a.this.b}}", "this stands in the middle of a path"),
        ("{{add 1 k=2 3}}", "behind one with a name"),
        ("{{}}", "expected a name or a value"),
        ("{{* part}}", "the only decorator is"),
        ("{{#*other 'a'}}{{/other}}", "the only decorator is"),
        ("{{#*inline}}{{/inline}}", "the only decorator is"),
        ("{{#*inline 'a'}}b", "the block inline is not closed"),
        ("{{#*inline 'a'}}{{else}}{{/inline}}", "the block inline has no else"),
        ("{{> part a b}}", "a partial takes one context at most"),
        ("{{#> part a b}}{{/part}}", "a partial takes one context at most"),
        ("{{> (nope 1)}}", "there is no helper nope"),
        ("{{> }}", "expected a name or a value"),
        ("{{{{raw}}}}", "raw blocks are not served"),
        ("{{!-- a", "the comment is not closed"),
        ("{{toHtml data.a}}", "the helper toHtml is not served yet"),
        ("{{colorMarker '#fff'}}", "the helper colorMarker is not served yet"),
        ("{{template '{{a}}' (foo 1)}}", "there is no helper foo"),
    ],
)
def test_what_cannot_be_compiled_is_named_with_its_place(template: str, problem: str) -> None:
    with pytest.raises(FormulaError) as raised:
        compile_template(template)
    assert str(raised.value).startswith("Line ")
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{#match data.name '('}}{{/match}}", "not a valid regular expression"),
        ("{{#match data.name '\\pL{1000}'}}{{/match}}", "not a valid regular expression"),
        ("{{#match data.name data.long}}{{/match}}", "at most 1024 characters"),
        ("{{template data.long}}", "at most 32767 characters"),
        ("{{#match data.name '(a)\\1'}}{{/match}}", "not a valid regular expression"),
        ("{{formatDate time 'H' tz='Mars/Base'}}", "no time zone"),
        ("{{formatDate time 'LLL' locale='de'}}", "English only"),
        ("{{formatDate time 'H' locale='xx-YY'}}", "no language"),
        ("{{formatGps data.place 'gga'}}", "is not served"),
        ("{{format 1 '999999d'}}", "fills up to at most"),
        ("{{template '{{template a}}'}}", "within a text that a helper evaluates"),
        ("{{evalExpression '{{template data.form}}'}}", "within a text that a helper evaluates"),
        ("{{template data.self}}", "within a text that a helper evaluates"),
        ("{{template '{{#if'}}", "not a valid template"),
        ("{{evalExpression '1 +'}}", "not a valid expression"),
        ("{{evalExpression '{{a}}{{b}}'}}", "not a valid expression"),
        ("{{decodeURIComponent '%E0%A4%A'}}", "not encoded"),
        ("{{indexByKey data.rows 1 '['}}", "not closed"),
    ],
)
def test_what_cannot_be_evaluated_is_named(template: str, problem: str) -> None:
    with pytest.raises(EvaluationError, match=problem):
        text(template)


def test_the_length_of_a_text_is_bounded() -> None:
    template = compile_template("{{#each data}}{{this}}{{/each}}", text_length_max=10)
    assert template.text({"data": ["12345"] * 2}) == "1234512345"
    with pytest.raises(EvaluationError, match="longer than its limit"):
        template.text({"data": ["12345"] * 3})
    long = {"a": ["x" * 1000] * 1000, "b": "y" * 10_000_000}
    for helper in ("upper", "jsonEncode", "join"):
        hungry = f"{{{{length ({helper} (array a a a a a a) {'b' if helper == 'join' else ''})}}}}"
        with pytest.raises(EvaluationError):
            text(hungry, long)


@pytest.mark.slow
@pytest.mark.parametrize(
    "template",
    [
        "{{#each a}}{{#each ../a}}{{#each ../a}}{{/each}}{{/each}}{{/each}}",
        "{{#each a}}{{#each ../a}}{{#if (gt ../../a this)}}{{/if}}{{/each}}{{/each}}",
        "{{#each a}}{{#if (length (jsonEncode ../a))}}{{/if}}{{/each}}" * 9,
        "{{#each a}}{{#includes ../text 'z'}}{{/includes}}{{/each}}",
        "{{#each a}}{{template '{{#each a}}{{/each}}' @root}}{{/each}}",
        "{{#each a}}{{#match ../text '(?:(?:(a?){50}){10})b'}}{{/match}}{{/each}}",
        "{{#each a}}{{#match 'x' (join (array 'a' this))}}{{/match}}{{/each}}",
        "{{#each a}}{{#each ../a}}{{evalExpression '{{text}} == {{text}}' @root}}{{/each}}{{/each}}",
    ],
)
def test_the_work_is_bounded(template: str) -> None:
    payload = {"a": list(range(2000)), "text": "x" * 1_000_000}
    with pytest.raises(EvaluationError, match=f"more than {WHOLE_STEPS} steps"):
        text(template, payload)


def test_nesting_is_bounded() -> None:
    def blocks(levels: int) -> str:
        return "{{#if a}}" * levels + "x" + "{{/if}}" * levels

    def chain(links: int) -> str:
        return "{{#if b}}" + "{{else if b}}" * links + "{{else}}x{{/if}}"

    def calls(levels: int) -> str:
        return "{{add 1 " + "(add 1 " * levels + "1" + ")" * levels + "}}"

    assert text(blocks(NESTING_MAX), {"a": 1}) == "x"
    assert text(chain(NESTING_MAX - 1), {"a": 1}) == "x"
    assert text(calls(NESTING_MAX)) == str(NESTING_MAX + 2)
    assert text("{{template a}}", {"a": blocks(NESTING_MAX)}) == "x"
    for deep in (
        blocks(NESTING_MAX + 1),
        chain(NESTING_MAX),
        calls(NESTING_MAX + 1),
        blocks(100_000),
        calls(100_000),
    ):
        with pytest.raises(FormulaError, match="nest deeper"):
            compile_template(deep)


@pytest.mark.slow
def test_a_deep_payload_is_written() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(EvaluationError, match="nests deeper"):
        text("{{a}}", {"a": deep})
    assert len(text("{{jsonEncode a}}", {"a": deep})) == 200_002


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
_MARKS = (
    "{{ }} {{{ }}} {{# {{/ {{^ ~ if each else a . / .. @ index this ( ) [ ] | as = \" ' \\ ! -- & > 0 -1 true"
)
_PIECES = st.sampled_from([" ", "\n", *_MARKS.split(" "), *HELPERS])


@given(st.lists(_PIECES, max_size=30).map("".join) | st.text(max_size=30), _VALUES)
@example("{{#each a as |}}", None)
@example("\\{{", None)
@example("{{!--}}", None)
def test_any_text_ends_in_a_text_or_an_error_of_its_own(template: str, payload: Any) -> None:
    try:
        compiled = compile_template(template)
        assert isinstance(compiled.text(payload, NOW_MS), str)
        compiled.value(payload, NOW_MS)
    except (FormulaError, EvaluationError):
        pass


@given(st.integers(0, 2**32), _VALUES)
def test_any_template_writes_a_text_for_any_payload(seed: int, payload: Any) -> None:
    assert isinstance(text(Writer(seed).template(), payload), str)


@given(st.sampled_from(sorted(HELPERS)), st.lists(_VALUES, min_size=5, max_size=5), _VALUES)
def test_any_helper_takes_any_values(name: str, values: list[Any], option: Any) -> None:
    helper = HELPERS[name]
    count = helper.least if helper.most is None else helper.most
    for given_count in range(helper.least, count + 1):
        arguments = "".join(f" [{position}]" for position in range(given_count))
        named = "".join(f" {key}=option" for key in sorted(helper.named or ["x"]))
        payload = {str(position): value for position, value in enumerate(values)} | {"option": option}
        with contextlib.suppress(EvaluationError):
            text("{{" + name + arguments + named + "}}", payload)


@given(st.floats() | st.integers(), st.text(".,~$#+-(<>=^ 0123456789fdegrsp%xXobnc", max_size=6))
def test_any_number_format_writes_a_text(number: float, form: str) -> None:
    try:
        written = format_number(number, form)
    except EvaluationError:
        return
    assert written is None or isinstance(written, str)


@given(
    st.integers() | st.floats() | st.datetimes().map(str),
    st.text("YMDHhmsSaAZzQwWgGdDEeXxLlokNy[]\\ -", max_size=10),
)
def test_any_date_format_writes_a_text(value: Any, form: str) -> None:
    for zone in ("UTC", "Asia/Kathmandu"):
        assert isinstance(dates.format_date(value, form, tz=zone), str)
    assert isinstance(dates.format_relative(value, NOW_MS), str)
