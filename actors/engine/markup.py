"""Markup: an XML or HTML document as elements in the order of the document, and parts of it as text, XML or plain data.

A text that is well-formed XML is read as XML: names are as they are written, with their prefixes. Any other text, and
one that begins with an HTML doctype or an html element, is read as HTML: names are in small letters, and what is
missing or too much is corrected. A piece of a document is read as well as a whole one. Declarations of entities are
not followed, and nothing is fetched.

The plain data are those of xml-js in its long form: elements have `type`, `name`, `attributes` (if any) and `children`,
texts `type` and `value`. Whitespace between elements is left out there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from xml.parsers import expat
from xml.sax.saxutils import escape

from trunkline.actors.core.runtime.computing import give_up_if_cancelled

ELEMENTS_MAX: Final = 100_000
DEPTH_MAX: Final = 256
_PIECE_CHARS: Final = 65_536
"""Characters that are parsed before a look whether the run was cancelled."""
_HTML_BEGINS: Final = ("<!doctype html", "<html")
_WRAPPERS: Final = ("html", "head", "body")
"""Elements that the parser of HTML adds where they are missing."""
_HIDDEN: Final = frozenset({"script", "style"})
_QUOTED: Final = {'"': "&quot;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"}

Leaf = dict[str, str]
"""A text, a comment or another part without children, in plain data."""


class TooLarge(Exception):
    """A document, or what is made of it, is too large. The sentence says of what."""


class Element:
    """An element. `parent` and `before` (the element before it under its parent) are indexes in the document, or -1."""

    __slots__ = ("attributes", "before", "children", "name", "parent")

    def __init__(self, name: str, attributes: dict[str, str], parent: int, before: int) -> None:
        self.name = name
        self.attributes = attributes
        self.children: list[Element | Leaf] = []
        self.parent = parent
        self.before = before


class Document:
    """A parsed document. `elements` has all of them, each before its children; `children` those without a parent."""

    def __init__(self, *, is_html: bool) -> None:
        self.is_html = is_html
        self.declaration: dict[str, str] | None = None
        self.children: list[Element | Leaf] = []
        self.elements: list[Element] = []
        self._open: list[int] = []
        self._last: list[int] = [-1]
        """The last element so far, under the document and under each open element."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self.elements) == ELEMENTS_MAX:
            raise TooLarge(f"The document has more than {ELEMENTS_MAX} elements.")
        if len(self._open) == DEPTH_MAX:
            raise TooLarge(f"The elements of the document nest deeper than {DEPTH_MAX} levels.")
        at = len(self.elements)
        made = Element(name, attributes, self._open[-1] if self._open else -1, self._last[-1])
        self.add(made)
        self.elements.append(made)
        self._last[-1] = at
        self._last.append(-1)
        self._open.append(at)

    def end(self) -> None:
        self._open.pop()
        self._last.pop()

    def add(self, part: Element | Leaf) -> None:
        (self.elements[self._open[-1]].children if self._open else self.children).append(part)

    def add_text(self, text: str, type: str = "text") -> None:
        siblings = self.elements[self._open[-1]].children if self._open else self.children
        last = siblings[-1] if siblings else None
        if isinstance(last, dict) and last["type"] == type:
            last["value"] += text
        else:
            siblings.append({"type": type, "value": text})


class _NoXml(Exception):
    """A text is not well-formed XML, or declares entities."""


def parse(text: str) -> Document:
    """Read a document. Raises `TooLarge`."""
    if not text[:1024].lstrip().lower().startswith(_HTML_BEGINS):
        try:
            return _xml(text)
        except (_NoXml, expat.ExpatError, TooLarge):
            pass  # in HTML, elements without an end do not nest
    return _html(text)


def _pieces(text: str) -> Iterator[bytes]:
    for at in range(0, len(text), _PIECE_CHARS):
        give_up_if_cancelled()
        yield text[at : at + _PIECE_CHARS].encode(errors="replace")


def _xml(text: str) -> Document:
    document = Document(is_html=False)
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.UseForeignDTD(False)
    # A piece of a document may have several elements at its top, or none.
    is_whole = text.lstrip()[:2] in ("<?", "<!")
    depth, is_cdata = 0, False

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if is_whole or depth > 1:
            document.start(name, attributes)

    def end(_name: str) -> None:
        nonlocal depth
        depth -= 1
        if is_whole or depth:
            document.end()

    def begin_cdata() -> None:
        nonlocal is_cdata
        is_cdata = True
        document.add({"type": "cdata", "value": ""})

    def end_cdata() -> None:
        nonlocal is_cdata
        is_cdata = False

    def declared(version: str, encoding: str | None, standalone: int) -> None:
        given = {"version": version, "encoding": encoding, "standalone": ("no", "yes", None)[standalone]}
        document.declaration = {name: value for name, value in given.items() if value is not None}

    def refuse(*_arguments: Any) -> None:
        raise _NoXml

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartCdataSectionHandler, parser.EndCdataSectionHandler = begin_cdata, end_cdata
    parser.CharacterDataHandler = lambda data: document.add_text(data, "cdata" if is_cdata else "text")
    parser.CommentHandler = lambda data: document.add({"type": "comment", "value": data})
    parser.ProcessingInstructionHandler = lambda target, data: document.add(
        {"type": "instruction", "name": target, "instruction": data}
    )
    parser.XmlDeclHandler = declared
    parser.StartDoctypeDeclHandler = lambda name, system, public, _has_subset: document.add(
        _doctype(name, public, system)
    )
    parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    if not is_whole:
        parser.Parse(b"<piece>")
    for piece in _pieces(text):
        parser.Parse(piece)
    parser.Parse(b"" if is_whole else b"</piece>", True)
    return document


class _FromHtml:
    """What the parser of HTML tells."""

    def __init__(self, document: Document, left_out: frozenset[str]) -> None:
        self._document = document
        self._left_out = left_out

    def start(self, name: str, attributes: Any) -> None:
        if name not in self._left_out:
            self._document.start(name, dict(attributes))

    def end(self, name: str) -> None:
        if name not in self._left_out:
            self._document.end()

    def data(self, data: str) -> None:
        self._document.add_text(data)

    def comment(self, data: str) -> None:
        self._document.add({"type": "comment", "value": data})

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        self._document.add(_doctype(name, public, system))

    def close(self) -> None:
        """Nothing is left to do."""


def _html(text: str) -> Document:
    from lxml import etree  # it is large, and few servers need it

    document = Document(is_html=True)
    left_out = frozenset(name for name in _WRAPPERS if not re.search(rf"<{name}[\s/>]", text, re.IGNORECASE))
    if text.strip():
        parser = etree.HTMLParser(target=_FromHtml(document, left_out), encoding="utf-8")
        for piece in _pieces(text):
            parser.feed(piece)
        parser.close()
    return document


def _doctype(name: str, public: str | None, system: str | None) -> Leaf:
    kind = f' PUBLIC "{public}"' if public else " SYSTEM" if system else ""
    return {"type": "doctype", "doctype": name + kind + (f' "{system}"' if system else "")}


class Writer:
    """Makes texts, XML and plain data of parts of a document, of `chars_max` characters together.

    Raises `TooLarge` beyond them.
    """

    def __init__(self, document: Document, chars_max: int) -> None:
        self._document = document
        self._chars_max = chars_max
        self._left = chars_max

    def text(self, part: Element | None) -> str:
        """The texts within an element, or within the whole document, without scripts and styles of HTML."""
        pieces: list[str] = []
        waiting = list(reversed(self._roots(part)))
        while waiting:
            each = waiting.pop()
            if isinstance(each, Element):
                self._count("")
                if each is part or not (self._document.is_html and each.name in _HIDDEN):
                    waiting.extend(reversed(each.children))
            elif each["type"] in ("text", "cdata"):
                pieces.append(self._count(each["value"]))
        return "".join(pieces)

    def xml(self, part: Element | None) -> str:
        """An element, or the whole document, as XML."""
        pieces: list[str] = []
        if part is None and self._document.declaration is not None:
            pieces.append(self._count(f"<?xml{_written(self._document.declaration)}?>"))
        waiting: list[Element | Leaf | str] = list(reversed(self._roots(part)))
        while waiting:
            each = waiting.pop()
            if isinstance(each, str):
                pieces.append(each)
            elif isinstance(each, Element):
                end = ">" if each.children else "/>"
                pieces.append(self._count(f"<{each.name}{_written(each.attributes)}{end}"))
                if each.children:
                    waiting.append(self._count(f"</{each.name}>"))
                    waiting.extend(reversed(each.children))
            else:
                pieces.append(self._count(_leaf(each)))
        return "".join(pieces)

    def data(self, part: Element | None) -> dict[str, Any]:
        """An element, or the whole document, as plain data."""
        made: dict[str, Any] = {}
        if part is None and self._document.declaration is not None:
            made["declaration"] = {"attributes": dict(self._document.declaration)}
        made["children"] = []
        waiting = [(made["children"], each) for each in reversed(self._roots(part))]
        while waiting:
            into, each = waiting.pop()
            if isinstance(each, Element):
                shown: dict[str, Any] = {"type": "element", "name": self._count(each.name)}
                if each.attributes:
                    self._count(_written(each.attributes))
                    shown["attributes"] = dict(each.attributes)
                shown["children"] = []
                waiting.extend((shown["children"], child) for child in reversed(each.children))
                into.append(shown)
            elif each["type"] != "text" or not each["value"].isspace():
                self._count("".join(each.values()))
                into.append(dict(each))
        return made

    def _roots(self, part: Element | None) -> list[Element | Leaf]:
        return self._document.children if part is None else [part]

    def _count(self, text: str) -> str:
        self._left -= len(text) + 1
        if self._left < 0:
            raise TooLarge(f"The result has more than {self._chars_max} characters.")
        return text


def _written(attributes: dict[str, str]) -> str:
    return "".join(f' {name}="{escape(value, _QUOTED)}"' for name, value in attributes.items())


def _leaf(part: Leaf) -> str:
    type = part["type"]
    if type == "text":
        return escape(part["value"])
    if type == "cdata":
        return f"<![CDATA[{part['value']}]]>"
    if type == "comment":
        return f"<!--{part['value']}-->"
    if type == "doctype":
        return f"<!DOCTYPE {part['doctype']}>"
    return f"<?{part['name']} {part['instruction']}?>"
