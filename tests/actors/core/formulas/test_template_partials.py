"""Partials that a template defines itself. What is expected is what Handlebars 4.7 writes."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.price import WHOLE_STEPS
from trunkline.actors.core.formulas.template_run import Run, Scope
from trunkline.actors.core.formulas.templates import compile_template

DATA: dict[str, Any] = {
    "name": "pump",
    "items": [{"n": 1}, {"n": 2}],
    "one": {"n": 3, "kind": "row"},
    "tag": "<b>",
}
ROW = '{{#*inline "row"}}<{{n}}>{{/inline}}'
OUTER = "{{#*inline 'o'}}({{> @partial-block}}){{/inline}}{{#*inline 'i'}}[{{> @partial-block}}]{{/inline}}"
TREE = {"n": 1, "below": [{"n": 2, "below": [{"n": 3}]}, {"n": 4}]}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (ROW + "{{> row one}}", "<3>"),
        ("{{> row one}}" + ROW, "<3>"),  # known in the whole template
        (ROW + "{{#each items}}{{> row}}{{/each}}", "<1><2>"),
        (ROW + "{{> row n=name}}", "<pump>"),
        (ROW + "{{> row one n=5}}", "<5>"),
        (ROW + "{{> 'row' one}}{{> (lookup one 'kind') one}}", "<3><3>"),
        ("{{#*inline 'a/b-c'}}x{{/inline}}{{> a/b-c}}", "x"),
        ("{{#*inline 'a'}}{{tag}}{{{tag}}}{{/inline}}{{> a}}", "&lt;b&gt;<b>"),
        # The scopes: `../` is of the place of the definition, `this` and the loop of that of the use.
        (
            "{{#*inline 'a'}}{{n}}{{../name}}{{@index}} {{/inline}}{{#each items}}{{> a}}{{/each}}",
            "1pump0 2pump1 ",
        ),
        ("{{#each items as |i|}}{{#*inline 'a'}}{{i.n}}{{/inline}}{{> a ../one}}{{/each}}", "12"),
        # The innermost definition counts, and only within its block.
        (
            "{{#*inline 'a'}}1{{/inline}}{{#with one}}{{#*inline 'a'}}2{{/inline}}{{> a}}{{/with}}{{> a}}",
            "21",
        ),
        ("{{#*inline 'b'}}{{> a}}{{/inline}}{{#*inline 'a'}}1{{/inline}}{{> b}}", "1"),
        # A partial block: what is written where there is no such partial, or what the partial writes of it.
        ("{{#> none}}else {{name}}{{/none}}", "else pump"),
        ("{{#*inline 'box'}}[{{> @partial-block}}]{{/inline}}{{#> box}}{{name}}{{/box}}", "[pump]"),
        (
            "{{#*inline 'box'}}[{{> nav}}]{{/inline}}{{#> box}}{{#*inline 'nav'}}{{name}}{{/inline}}{{/box}}",
            "[pump]",
        ),
        (
            OUTER + "{{#> o}}1{{#> i}}2{{/i}}{{/o}}",
            "(1[2])",
        ),
        # White space: alone on its line it takes the line, and its indentation goes to each line of the partial.
        ("a\n{{#*inline 'p'}}\n1\n2\n{{/inline}}\nb\n  {{> p}}\nc", "a\nb\n  1\n  2\nc"),
        ("{{#*inline 'p'}}1{{/inline}}a {{> p}} b", "a 1 b"),
        ("{{#*inline 'p'}}1{{/inline}}a {{~> p ~}} b", "a1b"),
    ],
)
def test_a_partial_is_written_as_handlebars_writes_it(template: str, text: str) -> None:
    assert compile_template(template).text(DATA) == text


def test_a_partial_may_write_itself_as_deep_as_the_data() -> None:
    template = "{{#*inline 'node'}}{{n}}{{#each below}}({{> node}}){{/each}}{{/inline}}{{> node}}"
    assert compile_template(template).text(TREE) == "1(2(3))(4)"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{> none}}", "There is no partial none."),
        ("{{> @partial-block}}", "There is no partial @partial-block."),
        ("{{#*inline 'a'}}{{> a}}{{/inline}}{{> a}}", "32 deep"),
        (
            "{{#*inline 'a'}}x{{/inline}}{{#with one}}{{#*inline 'b'}}{{/inline}}{{/with}}{{> b}}",
            "no partial b",
        ),
    ],
)
def test_what_cannot_be_written_is_said(template: str, problem: str) -> None:
    with pytest.raises(EvaluationError, match=problem):
        compile_template(template).text(DATA)


def test_partials_that_write_themselves_twice_are_bounded_by_steps() -> None:
    template = compile_template("{{#*inline 'a'}}{{> a}}{{> a}}{{/inline}}{{> a}}")
    run = Run({}, 1_000, None)
    with pytest.raises(EvaluationError):
        template.write(Scope(run, {}, None))
    wide = compile_template(
        "{{#*inline 'a'}}{{#if (lt d 20)}}{{> a d=(add d 1)}}{{> a d=(add d 1)}}{{/if}}{{/inline}}{{> a d=0}}"
    )
    with pytest.raises(EvaluationError, match=f"{WHOLE_STEPS} steps"):
        wide.text({})


def test_deep_blocks_in_partials_end_in_a_sentence() -> None:
    opened, closed = "{{#if name}}" * 60, "{{/if}}" * 60
    template = compile_template(f"{{{{#*inline 'a'}}}}{opened}{{{{> a}}}}{closed}{{{{/inline}}}}{{{{> a}}}}")
    with pytest.raises(EvaluationError, match="deep"):
        template.text(DATA)


def test_a_text_is_counted_once_however_deep_its_partials_are_indented() -> None:
    template = compile_template(
        "{{#*inline 'a'}}\n{{text}}\n{{/inline}}\n{{#*inline 'b'}}\n  {{> a}}\n{{/inline}}\n  {{> b}}\n",
        1_000,
    )
    assert template.text({"text": "x" * 900}) == f"    {'x' * 900}\n"
