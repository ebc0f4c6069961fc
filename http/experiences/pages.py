"""The pages of an experience as bodies of answers: what they are told, and where they are rendered."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from trunkline.actors.core.contents.signatures import PUBLIC_PATH, Signatures
from trunkline.actors.core.formulas import price
from trunkline.actors.core.formulas.price import TakesLong
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.computing import give_up_if_cancelled
from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.presentation.experience.rendering import RenderBounds, RenderingError, render
from trunkline.actors.presentation.experience.replies import Page
from trunkline.actors.presentation.experience.sites import Site, Sites
from trunkline.http.experiences.visits import Visit
from trunkline.limits.table import Limits

_NESTED_COMPONENTS_MAX: Final = 20
"""Components within each other: one cannot contain itself without end."""
_THREADS_MAX: Final = 2
"""Long pages that are rendered at a time, half of them of one owner. They share the processor with everything else."""
_WAITING_MAX: Final = 256
"""Long pages that wait for a thread."""

_HTML: Final = "text/html; charset=utf-8"
_SHOWN_OF_VIEW: Final = ("name", "description", "viewType", "layoutId", "viewTags")


class PageProblem(Exception):
    """A page cannot be shown. The sentence says why."""


class MissingPage(PageProblem):
    """There is no such page."""


class Pages:
    """Renders the pages of all experiences of one system."""

    def __init__(
        self, limits: Limits, sites: Sites, signatures: Signatures, owner_of: Callable[[bytes], bytes]
    ) -> None:
        self._limits = limits
        self._signatures = signatures
        self._sites = sites
        self._owner_of = owner_of
        self._threads = OwnerShares("pages", _THREADS_MAX, _WAITING_MAX, leaves=1)

    def context(self, visit: Visit) -> Doc:
        """What templates may name: the request, who sent it, and the version."""
        site, data = visit.site, visit.data
        return {
            "time": visit.now_ms,
            "application": {"id": site.application.hex(), "name": site.application_name},
            "experience": visit.experience,
            "globals": site.globals,
            "pageData": {},
            "request": {name: data[name] for name in _SHOWN_OF_REQUEST if name in data},
            "flow": {},
        }

    async def rendered(self, visit: Visit, page: Page) -> tuple[str, bytes]:
        """The content type and the text of a page. Raises `PageProblem`."""
        site = visit.site
        if page.version not in ("", site.version):
            other = self._sites.get(site.application, page.version)
            if other is None:
                raise PageProblem(f"There is no version {page.version[:100]} of this experience.")
            site = other
        layout_id = (page.layout or site.view_docs.get(page.id, {}).get("layoutId") or "").lower()
        context = self.context(visit)
        if page.data is not UNDEFINED:
            context["pageData"] = page.data
        context["flow"] = page.flow or {}
        context["experience"] = {
            **visit.experience,
            "page": _shown(site, page.id, "page"),
            "layout": _shown(site, layout_id, "layout") if layout_id else None,
        }
        limits = self._limits
        bounds = RenderBounds(limits.experience_page_chars_max, _NESTED_COMPONENTS_MAX)
        files_url = f"{self._signatures.base_url}{PUBLIC_PATH}/{site.application.hex()}"
        layout = site.views[layout_id] if layout_id else None
        work = partial(
            render,
            site.views[page.id],
            layout,
            site.components,
            context,
            bounds,
            now_ms=visit.now_ms,
            files_url=files_url,
        )
        try:
            try:
                text = price.inline(work)
            except TakesLong:
                owner = self._owner_of(site.application)
                whole = partial(price.whole, work, give_up_if_cancelled)
                text = await self._threads.compute(owner, whole)
        except RenderingError as error:
            raise PageProblem(str(error)) from None
        content_type = site.view_docs[page.id]["headers"].get("content-type") or _HTML
        if content_type.startswith("text/") and "charset" not in content_type:
            content_type += "; charset=utf-8"
        return content_type, text.encode("utf-8", "replace")


_SHOWN_OF_REQUEST: Final = ("path", "method", "params", "query", "body", "headers", "cookies")


def _shown(site: Site, id: str, kind: str) -> Doc:
    """What templates may name of a view. Raises `PageProblem` if it is none of this kind, of a page `MissingPage`."""
    doc = site.view_docs.get(id)
    if doc is None or doc["viewType"] != kind:
        problem = MissingPage if kind == "page" else PageProblem
        raise problem(f"{id[:100] or 'The empty text'} is not a {kind} of the version {site.version}.")
    return {"id": id, **{name: doc[name] for name in _SHOWN_OF_VIEW if name in doc}}
