"""Parts of HTML and XML documents are found by selectors, and given as texts, XML or plain data."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.engine.flow_cases import failure, run_node
from trunkline.actors.engine.css_selectors import Unserved, select
from trunkline.actors.engine.markup import DEPTH_MAX, ELEMENTS_MAX, TooLarge, Writer, parse
from trunkline.actors.engine.nodes.html_parser import INLINE_CHARS_MAX
from trunkline.actors.engine.visit import Bounds

Json = dict[str, Any]

PATHS = {"documentPath": "data.page", "resultPath": "data.found"}
LARGE = Bounds(steps=10, loop_items=10, payload_bytes=5_000_000)

LIST = (
    '<ul>\n  <li id="first" class="edge"><b>Item</b> number <a href="/one">One</a></li>\n'
    '  <li id="second"><b>Item</b> number <a href="/two">Two</a></li>\n'
    '  <li id="third" class="edge"><b>Item</b> number <a href="/three">Three</a></li>\n</ul>'
)
HTML = (
    "<!DOCTYPE html><html><head><title>T</title><style>p {}</style></head><BODY><p>One<p class='x y'>Two<br>2"
    "<div lang=en-gb data-n=1>a < b && c</div><script>if (a < b) {}</script><input checked>&nbsp;&amp;</body></html>"
)
XML = (
    '<?xml version="1.0" encoding="iso-8859-1"?><!-- c --><s:Envelope xmlns:s="urn:s" xmlns="urn:d">'
    '<s:Body><Item n="1"><![CDATA[a<b]]></Item><Item n="2"/>é<?go there?></s:Body></s:Envelope>'
)
SHOP = (
    '<shop><shelf id="a"><item n="1">pen</item><item n="2">ink</item><note/></shelf>'
    '<shelf id="b"><item n="3"><sub><item n="4"/></sub></item></shelf></shop>'
)


def texts(page: str, selector: str) -> list[str]:
    document = parse(page)
    return [Writer(document, 10_000).text(each) for each in select(document, selector)]


async def found(page: str, selector: str = "", form: str = "", **more: Any) -> Any:
    config = {**PATHS, "selectorTemplate": "{{data.by}}", "resultFormatTemplate": form}
    return (await run_node("HtmlParserNode", config, {"page": page, "by": selector}, **more))["data"]["found"]


async def test_each_match_is_an_item_in_the_form_that_is_named() -> None:
    def data(id: str, link: str) -> Json:
        bold = {"type": "element", "name": "b", "children": [{"type": "text", "value": "Item"}]}
        anchor = {
            "type": "element",
            "name": "a",
            "attributes": {"href": f"/{link.lower()}"},
            "children": [{"type": "text", "value": link}],
        }
        item = {"type": "element", "name": "li", "attributes": {"id": id, "class": "edge"}}
        return {"children": [{**item, "children": [bold, {"type": "text", "value": " number "}, anchor]}]}

    assert await found(LIST, ".edge") == ["Item number One", "Item number Three"]
    assert await found(LIST, ".edge", "xml") == [
        '<li id="first" class="edge"><b>Item</b> number <a href="/one">One</a></li>',
        '<li id="third" class="edge"><b>Item</b> number <a href="/three">Three</a></li>',
    ]
    assert await found(LIST, ".edge", "json") == [data("first", "One"), data("third", "Three")]
    assert await found(LIST, ".none", "json") == []
    assert await found(LIST, "li[", "json") == []


async def test_without_a_selector_the_document_is_the_only_item() -> None:
    assert await found(LIST, "", "xml") == [LIST]
    assert await found("", "", "text") == [""]
    (whole,) = await found(XML, "", "json")
    assert whole["declaration"] == {"attributes": {"version": "1.0", "encoding": "iso-8859-1"}}
    assert whole["children"][0] == {"type": "comment", "value": " c "}
    body = whole["children"][1]["children"][0]
    assert body["name"] == "s:Body"
    assert body["children"] == [
        {
            "type": "element",
            "name": "Item",
            "attributes": {"n": "1"},
            "children": [{"type": "cdata", "value": "a<b"}],
        },
        {"type": "element", "name": "Item", "attributes": {"n": "2"}, "children": []},
        {"type": "text", "value": "é"},
        {"type": "instruction", "name": "go", "instruction": "there"},
    ]
    assert await found(XML, "", "xml") == [XML]


@pytest.mark.parametrize(
    ("page", "selector", "expected"),
    [
        (HTML, "p", ["One", "Two2"]),
        (HTML, "P.y", ["Two2"]),
        (HTML, "body > input:checked", [""]),
        (HTML, "script", ["if (a < b) {}"]),
        (HTML, "html > head title", ["T"]),
        (HTML, "[lang|=en]", ["a < b && c"]),
        (XML, "Item", ["a<b", ""]),
        (XML, "item", []),
        (XML, "s|Body Item[n='1']", ["a<b"]),
        (XML, "s\\:Body > Item:empty", [""]),
        ("<li>1<li>2<p>3", "li", ["1", "23"]),
        ("<a>1</a><b/>", "a + b", [""]),
        ("a <b>1</b>", ":root", ["1"]),
        ("<a>&nbsp;<br></a>", "a", ["\xa0"]),
        ("plain", "*", []),
    ],
)
def test_documents_are_read_as_they_are(page: str, selector: str, expected: list[str]) -> None:
    assert texts(page, selector) == expected


def test_scripts_and_styles_of_html_are_not_visible() -> None:
    document = parse(HTML)
    assert Writer(document, 1_000).text(None).endswith("\xa0&")
    assert "if (" not in Writer(document, 1_000).text(None)
    assert "p {}" not in Writer(document, 1_000).text(None)


@pytest.mark.parametrize(
    ("selector", "numbers"),
    [
        ("item", "1234"),
        ("shop > shelf > item", "123"),
        ("shelf item item", "4"),
        ("shelf#a > item, #b sub > *", "124"),
        ("item + item", "2"),
        ("item ~ item", "2"),
        ("[n]:not([n='2'])", "134"),
        (":is(#a, sub) > item", "124"),
        (":where(sub) item", "4"),
        ("item:has(item)", "3"),
        ("shelf:has(> sub) item", ""),
        ("shelf:has(> item > sub) item", "34"),
        ("shelf:has(item + note) item", "12"),
        ("item:has(~ note)", "12"),
        ("item:has(+ note)", "2"),
        ("item:has(sub, p)", "3"),
        ("item:first-child", "134"),
        ("item:last-child", "34"),
        ("item:only-child", "34"),
        ("item:last-of-type", "234"),
        ("item:first-of-type", "134"),
        ("shop > * > item:only-of-type", "3"),
        ("#a > :nth-child(2)", "2"),
        ("#a > :nth-child(odd of)", ""),
        ("#a > item:nth-child(odd)", "1"),
        ("#a > item:nth-last-child(-n+2)", "2"),
        ("#a > item:nth-of-type(2n)", "2"),
        ("#a > item:nth-last-of-type(2)", "1"),
        ("item:nth-child('2')", ""),
        ("[n^='1'], [n$='2'], [n*='3'], [n~='4']", "1234"),
        ("item[n!='1']", "234"),
        ("[n*='']", ""),
        ("shelf[id='A' i] > item", "12"),
        (":root item", "1234"),
    ],
)
def test_selectors_choose(selector: str, numbers: str) -> None:
    document = parse(SHOP)
    assert "".join(each.attributes.get("n", each.name) for each in select(document, selector)) == numbers


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        ("a:hover", "has :hover, which is not served"),
        ("a:lang(en)", "has :lang(), which is not served"),
        ("a::before", "has ::before, which is not an element of a document"),
        ("a" * 1_001, "has 1001 characters; give at most 1000"),
    ],
)
async def test_what_is_not_served_is_told(selector: str, reason: str) -> None:
    with pytest.raises(Unserved, match="^" + reason.replace("(", r"\(").replace(")", r"\)")):
        select(parse(SHOP), selector)
    config = {**PATHS, "selectorTemplate": selector}
    name, message = await failure("HtmlParserNode", config, {"page": SHOP})
    assert name == "ValidationError"
    assert message.startswith("config.selectorTemplate: ")
    assert message.endswith(f"{reason}.")


@given(
    page=st.text(st.sampled_from("<>/&;!-[]a=b'\"? \n\x00é\ud800")),
    selector=st.text(st.sampled_from("ab*>+~ :.#[]=()|,'\\not")),
)
def test_any_text_is_read_and_any_selector_is_judged(page: str, selector: str) -> None:
    document = parse(page)
    writer = Writer(document, 100_000)
    try:
        chosen = select(document, selector)
    except Unserved:
        chosen = []
    for each in (None, *chosen):
        writer.text(each), writer.data(each), writer.xml(each)


@given(st.recursive(st.text("xy ", max_size=3), lambda inner: st.lists(inner, max_size=4), max_leaves=20))
def test_what_is_written_is_read_again(tree: Any) -> None:
    def written(part: Any) -> str:
        return part if isinstance(part, str) else f"<n k='{len(part)}'>{''.join(map(written, part))}</n>"

    page = f"<r>{written(tree)}</r>"
    document = parse(page)
    again = Writer(document, 10_000).xml(None)
    assert Writer(parse(again), 10_000).data(None) == Writer(document, 10_000).data(None)
    assert re.sub(r"<(\w)([^>]*)/>", r"<\1\2></\1>", again).replace('"', "'") == page


async def test_long_documents_are_read_as_well() -> None:
    rows = "".join(f"<tr><td>{at}<td>x" for at in range(3_000))
    page = f"<table>{rows}</table>"
    assert len(page) > INLINE_CHARS_MAX
    assert len(await found(page, "tr > td:first-child", bounds=LARGE)) == 3_000


def test_the_size_of_documents_and_results_is_bounded() -> None:
    with pytest.raises(TooLarge, match=f"more than {ELEMENTS_MAX} elements"):
        parse("<a/>" * (ELEMENTS_MAX + 1))
    for page in ("<div>" * (DEPTH_MAX + 1), "<div>" * (DEPTH_MAX + 1) + "</div>" * (DEPTH_MAX + 1)):
        with pytest.raises(TooLarge, match=f"deeper than {DEPTH_MAX} levels"):
            parse(page)
    document = parse(SHOP)
    for write in (Writer(document, 10).text, Writer(document, 10).xml, Writer(document, 10).data):
        with pytest.raises(TooLarge, match="more than 10 characters"):
            write(None)


def test_entities_are_not_followed() -> None:
    page = '<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd"><!ENTITY f "ff">]><r>&e;&f;</r>'
    assert "root:" not in Writer(parse(page), 10_000).xml(None)
    assert "ff" not in Writer(parse(page), 10_000).text(parse(page).elements[0])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"documentPath": ""}, "config.documentPath: is not set"),
        ({"resultPath": ""}, "config.resultPath: is not set"),
        (
            {"resultFormatTemplate": "yaml"},
            "config.resultFormatTemplate: gives 'yaml'; give one of text, xml, json.",
        ),
        ({"documentPath": "data.by"}, "config.documentPath: leads to 7, not to a text."),
    ],
)
async def test_what_is_wrong_is_told(config: Json, message: str) -> None:
    assert (await failure("HtmlParserNode", {**PATHS, **config}, {"page": "", "by": 7}))[1].startswith(
        message
    )
