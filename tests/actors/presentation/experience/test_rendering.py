"""Pages of an experience: layouts, components, sections, and the bounds on what a view may do."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.actors.core.formulas import price
from trunkline.actors.presentation.experience.rendering import RenderBounds, RenderingError, View, render

BOUNDS = RenderBounds(text_chars=10_000, component_depth=5)


def rendered(
    page: str,
    layout: str | None = None,
    components: dict[str, str] | None = None,
    context: Any = None,
    bounds: RenderBounds = BOUNDS,
) -> str:
    views = {name: View("component", name, body) for name, body in (components or {}).items()}
    around = None if layout is None else View("layout", "around", layout)
    return render(View("page", "first", page), around, views, context or {}, bounds, 0, "http://files/a")


def test_a_page_is_placed_in_its_layout() -> None:
    assert rendered("<p>{{a}}</p>", "<main>{{page}}{{{ page }}}</main>", context={"a": "1 < 2"}) == (
        "<main><p>1 &lt; 2</p><p>1 &lt; 2</p></main>"
    )
    assert rendered("{{page}}", context={"page": "a field"}) == "a field", "a page has no page"


def test_a_component_sees_what_it_is_given() -> None:
    context = {"items": [{"name": "<a>"}, {"name": "b"}], "name": "root"}
    parts = {
        "card": "[{{name}}|{{@root.name}}|{{@args.big}}|{{@args.name}}]",
        "outer": "{{component 'card' items.[1]}}{{@args.big}}",
    }
    page = "{{#each items}}{{component 'card' this big=@index name='x'}}{{/each}}{{component 'card'}}"
    assert (
        rendered(page, components=parts, context=context) == "[&lt;a&gt;|root|0|x][b|root|1|x][root|root||]"
    )
    assert rendered("{{component 'outer' big=7}}", components=parts, context=context) == "[b|root||]7"
    in_loop = "{{#each items}}{{component 'card'}}{{/each}}"
    assert rendered(in_loop, components=parts, context=context) == "[&lt;a&gt;|root||][b|root||]"
    assert rendered("{{component missing}}{{component 'missing'}}.") == "."


def test_sections_are_filled_wherever_the_filling_stands() -> None:
    layout = "{{#section 'title'}}none{{/section}}/{{section 'head'}}/{{page}}{{component 'end'}}"
    parts = {"end": "{{#fillSection 'head'}}by {{who}}{{/fillSection}}end"}
    context = {"who": "<me>", "fake": "<0:0>"}
    assert rendered("page{{fake}}", layout, parts, context) == "none/by &lt;me&gt;/page&lt;0:0&gt;end"
    page = "{{#fillSection 'title'}}A{{/fillSection}}-{{#fillSection 'title'}}B{{/fillSection}}"
    assert rendered(page, layout, parts, context) == "B/by &lt;me&gt;/-end"
    assert rendered("{{#fillSection 'x'}}{{section 'x'}}y{{/fillSection}}{{section 'x'}}") == "y"


def test_a_public_file_has_an_address() -> None:
    assert rendered("<img src=\"{{file '/a/b c&d.png'}}\">") == '<img src="http://files/a/a/b%20c%26d.png">'
    assert "public files only" in refused("{{file 'a' private=true ttl=9}}")


def test_a_dashboard_is_a_sentence() -> None:
    text = rendered("<h1>A</h1>{{element 'dashboard' dashboardId='1' ctx=(obj a=b)}}")
    assert text == "<h1>A</h1><p>This server does not show dashboards in pages of experiences.</p>"


def refused(page: str, **more: Any) -> str:
    with pytest.raises(RenderingError) as caught:
        rendered(page, **more)
    return str(caught.value)


def test_a_view_that_cannot_be_rendered_is_named() -> None:
    assert refused("{{#if}}").startswith("The page first: ")
    assert (
        refused("a", layout="{{nothing 1}}")
        == "The layout around: Line 1, column 3: there is no helper nothing."
    )
    assert refused("{{component 'c'}}", components={"c": "{{/if}}"}).startswith("The component c: ")
    assert refused("{{component 'c'}}", components={"c": "{{component 'c'}}"}) == (
        "The component c: c lies in 5 components, which is the limit."
    )


def test_text_and_steps_are_bounded() -> None:
    deep = "{{#each a}}{{#each @root.a}}{{#each @root.a}}.{{/each}}{{/each}}{{/each}}"
    many = {"a": list(range(100))}
    with pytest.raises(price.TakesLong):
        price.inline(lambda: rendered(deep, context=many))
    deeper = deep.replace("}}.{{", "}}{{#each @root.a}}{{/each}}{{")
    assert f"more than {price.WHOLE_STEPS} steps" in refused(deeper, context=many)
    wide = {"c": "x" * 300}
    loop = "{{#each a}}{{component 'c'}}{{/each}}"
    assert "longer than its limit" in refused(loop, components=wide, context=many)
    filled = "{{#each a}}{{#fillSection 's'}}" + "x" * 300 + "{{/fillSection}}{{/each}}"
    assert "longer than its limit" in refused(filled, context=many), "also what is written over counts"
    placed = "{{#fillSection 's'}}" + "x" * 300 + "{{/fillSection}}{{#each a}}{{section 's'}}{{/each}}"
    assert "longer than its limit" in refused(placed, context=many)
