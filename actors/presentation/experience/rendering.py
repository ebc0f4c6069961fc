"""The pages of an experience as texts: a page in its layout, with the components that both use.

Views are templates (`actors/core/formulas/templates.py`) with more helpers. `{{page}}` stands in a layout for the page.
`{{component "name" context key=value}}` renders a component: it sees the context, or without one what the place sees,
and the named values are `@args`; a component that does not exist renders nothing. `{{section "name"}}`, or the block
with a default, is a place that `{{#fillSection "name"}}` fills from a page or a component, wherever that stands; the
last one counts. `{{file "path"}}` is the address of a public file. `{{element ...}}` stands for a dashboard, which this
server does not draw in pages: a sentence says so.

A rendering is bounded by its text and the depth of its components, and its work is charged (`core/formulas/price.py`).
It needs no store, so that a long one can run in a thread.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from trunkline.actors.core.formulas.errors import EvaluationError, FormulaError
from trunkline.actors.core.formulas.template_functions import Dialect, Helper
from trunkline.actors.core.formulas.template_run import Evaluate, Run, Scope, Write
from trunkline.actors.core.formulas.templates import Template, compile_template
from trunkline.actors.core.formulas.values import UNDEFINED, to_text, truth
from trunkline.actors.core.values.errors import Invalid

_NO_DASHBOARD: Final = "<p>This server does not show dashboards in pages of experiences.</p>"


class RenderingError(Exception):
    """A view cannot be rendered. The sentence names it."""


class View:
    """A view whose text is compiled when it is first rendered."""

    __slots__ = ("_body", "_template", "kind", "name")

    def __init__(self, kind: str, name: str, body: str) -> None:
        self.kind = kind
        self.name = name
        self._body = body
        self._template: Template | None = None

    @property
    def template(self) -> Template:
        """The compiled text. Raises `FormulaError`."""
        if self._template is None:
            dialect = _LAYOUT if self.kind == "layout" else _PAGE
            self._template = compile_template(self._body, dialect=dialect)
        return self._template


class RenderBounds(NamedTuple):
    """How much one rendering may do."""

    text_chars: int
    component_depth: int


class _Rendering:
    """One rendering: what the sections contain, and the components that are being rendered."""

    __slots__ = (
        "components",
        "depth",
        "depth_max",
        "files_url",
        "mark",
        "page",
        "places",
        "sections",
        "view",
    )

    def __init__(self, components: Mapping[str, View], depth_max: int, view: View, files_url: str) -> None:
        self.components = components
        self.files_url = files_url
        self.depth_max = depth_max
        self.depth = 0
        self.page = ""
        self.sections: dict[str, str] = {}
        self.places: list[tuple[str, str]] = []
        # A text that no view and no payload can contain stands for a section until all of them are filled.
        self.mark = secrets.token_hex(16)
        self.view = view

    def place(self, name: str, default: str) -> str:
        """A mark that stands for a section."""
        self.places.append((name, default))
        return f"<{self.mark}:{len(self.places) - 1}>"

    def filled(self, text: str, chars_max: int) -> str:
        """A text with its sections in place of their marks. A section within a section stays empty."""
        if not self.places:
            return text
        mark = re.compile(f"<{self.mark}:([0-9]+)>")
        sections = {name: mark.sub("", text) for name, text in self.sections.items()}
        pieces = mark.split(text)
        for at in range(1, len(pieces), 2):
            name, default = self.places[int(pieces[at])]
            pieces[at] = sections.get(name, default)
        if sum(map(len, pieces)) > chars_max:
            raise EvaluationError("The text of the template is longer than its limit.")
        return "".join(pieces)


def render(
    page: View,
    layout: View | None,
    components: Mapping[str, View],
    context: Any,
    bounds: RenderBounds,
    now_ms: int,
    files_url: str,
) -> str:
    """The text of a page in its layout. Raises `RenderingError`.

    `files_url` is the address of the public files of the application.
    """
    rendering = _Rendering(components, bounds.component_depth, page, files_url)
    run = Run(context, bounds.text_chars, now_ms)
    run.host = rendering
    try:
        for view in (page, layout):
            if view is not None:
                rendering.view = view
                run.characters_left = bounds.text_chars
                write = view.template.write
                rendering.page = run.captured(lambda: write(Scope(run, context, None)))  # noqa: B023 - called at once
        return rendering.filled(rendering.page, bounds.text_chars)
    except (FormulaError, EvaluationError) as error:
        raise RenderingError(f"The {rendering.view.kind} {rendering.view.name}: {error}") from None


def check_view(body: str) -> None:
    """Raise `Invalid` for a text that no view can be rendered from."""
    try:
        compile_template(body, dialect=_LAYOUT)  # takes all that the others take
    except FormulaError as error:
        raise Invalid(f"body: is not a template. {error}") from None


# The helpers.


def _component(scope: Scope, name: Any, context: Any = UNDEFINED, /, **arguments: Any) -> str:
    run = scope.run
    rendering: _Rendering = run.host
    view = rendering.components.get(to_text(name))
    if view is None:
        return ""
    if rendering.depth >= rendering.depth_max:
        raise EvaluationError(f"{view.name} lies in {rendering.depth} components, which is the limit.")
    inner = Scope(run, scope.this if context is UNDEFINED else context, None)
    outer, run.arguments = (rendering.view, run.arguments), arguments
    rendering.depth += 1
    rendering.view = view
    text = run.captured(lambda: view.template.write(inner))
    # After an error nothing of this is used again, and the view is named in the sentence.
    rendering.depth -= 1
    rendering.view, run.arguments = outer
    return text


def _page(scope: Scope) -> str:
    page: str = scope.run.host.page
    return page


def _section(scope: Scope, name: Any) -> str:
    mark: str = scope.run.host.place(to_text(name), "")
    return mark


def _write_section(name: Evaluate, default: Write) -> Write:
    def write(scope: Scope) -> None:
        run = scope.run
        run.spend(1)
        text = run.captured(lambda: default(scope))
        run.write(run.host.place(to_text(name(scope)), text))

    return write


def _write_fill(name: Evaluate, content: Write) -> Write:
    def write(scope: Scope) -> None:
        run = scope.run
        run.spend(1)
        run.host.sections[to_text(name(scope))] = run.captured(lambda: content(scope))

    return write


def _file(scope: Scope, path: Any, /, **arguments: Any) -> str:
    if truth(arguments.get("private")):
        raise EvaluationError("The helper file gives addresses of public files only; leave private out.")
    url: str = scope.run.host.files_url
    return f"{url}/{quote(to_text(path).lstrip('/'))}"


def _element(_kind: Any, **_arguments: Any) -> str:
    return _NO_DASHBOARD


_HELPERS: Final = {
    "component": Helper(_component, 1, 2, named=None, whole=True, of_run=True, markup=True),
    "element": Helper(_element, 1, 1, named=None, markup=True),
    "file": Helper(_file, 1, 1, named=None, of_run=True),
    "section": Helper(_section, 1, 1, of_run=True, markup=True),
}
_BLOCKS: Final[Mapping[str, Callable[[Evaluate, Write], Write]]] = {
    "fillSection": _write_fill,
    "section": _write_section,
}
_PAGE: Final = Dialect(_HELPERS, _BLOCKS)
_LAYOUT: Final = Dialect({**_HELPERS, "page": Helper(_page, 0, 0, of_run=True, markup=True)}, _BLOCKS)
