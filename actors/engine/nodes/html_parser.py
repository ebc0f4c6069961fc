"""HtmlParserNode: finds parts of an HTML or XML document by a CSS selector.

The text at `documentPath` is read as XML if it is well-formed and does not begin as HTML does, else as HTML, also if it
has mistakes. `resultPath` gets an array with one item for each element that `selectorTemplate` matches; without a
selector it has the whole document. A text that is no selector matches nothing; a part of a selector that is not served
fails the run. By `resultFormatTemplate` an item is the `text`, the `xml`, or the `json` of xml-js in its long form.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.runtime.computing import in_thread
from trunkline.actors.engine import markup
from trunkline.actors.engine.css_selectors import Unserved, select
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.heavy_work import check_payload
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import NEEDED_RESULT, Config, PathSetting, TemplateSetting
from trunkline.actors.engine.tools import needed_path, shortened, text_reader
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "HtmlParserNode"

_DOCUMENT_PATH: Final = PathSetting("documentPath", is_needed=True)
_SELECTOR: Final = TemplateSetting("selectorTemplate")
_RESULT_FORMAT: Final = TemplateSetting("resultFormatTemplate")
FORM: Final = Form("data", (_DOCUMENT_PATH, _SELECTOR, _RESULT_FORMAT, NEEDED_RESULT))

INLINE_CHARS_MAX: Final = 2_048
"""Longer documents are read in a thread: they take more than some milliseconds."""
INLINE_SELECTOR_CHARS_MAX: Final = 100
"""The same of selectors."""
_FORMS: Final = ("text", "xml", "json")


def prepare(config: Config) -> NodeStep:
    source, destination = needed_path(config, _DOCUMENT_PATH), needed_path(config, NEEDED_RESULT)
    selector, form = text_reader(config, _SELECTOR), text_reader(config, _RESULT_FORMAT)

    def step(visit: Visit) -> Any:
        text, wanted, written = source.get(visit.payload), selector(visit).strip(), form(visit) or _FORMS[0]
        if not isinstance(text, str):
            raise refused(f"config.documentPath: leads to {shortened(text)}, not to a text.")
        if written not in _FORMS:
            raise refused(
                f"config.resultFormatTemplate: gives {shortened(written)}; give one of {', '.join(_FORMS)}."
            )
        chars_max = visit.run.bounds.payload_bytes
        if len(text) <= INLINE_CHARS_MAX and len(wanted) <= INLINE_SELECTOR_CHARS_MAX:
            visit.put(destination, _found(text, wanted, written, chars_max))
            return 0

        async def in_its_thread() -> int:
            visit.put(destination, await in_thread(_found, text, wanted, written, chars_max))
            check_payload(visit)
            return 0

        return in_its_thread()

    return step


def _found(text: str, selector: str, form: str, chars_max: int) -> list[Any]:
    try:
        document = markup.parse(text)
        parts = select(document, selector) if selector else [None]
        writer = markup.Writer(document, chars_max)
        write = {"text": writer.text, "xml": writer.xml, "json": writer.data}[form]
        return [write(part) for part in parts]
    except markup.TooLarge as error:
        raise NodeError("PayloadTooLarge", str(error)) from None
    except Unserved as error:
        raise refused(f"config.selectorTemplate: {shortened(selector)} {error}.") from None
