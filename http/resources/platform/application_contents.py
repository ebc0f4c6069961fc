"""What belongs to an application as a whole: its globals, its readme, its search, and the log of its imports."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from trunkline.actors.core.records.summary import SummaryChoice
from trunkline.actors.platform.applications.messages import (
    ApplicationView,
    GetApplication,
    GlobalPatch,
    PatchGlobals,
)
from trunkline.actors.platform.applications.readme import GetReadme, PatchReadme, ReadmePatch, ReadmeView
from trunkline.actors.platform.applications.search import Search, SearchChoice, SearchResult
from trunkline.actors.portability.bundles.import_logs import ImportLog, ImportLogRange, ListImportLogs
from trunkline.http.calls.route import APP_PATH, APPLICATION_ACTOR, LinkTemplates
from trunkline.http.calls.verbs import Shown, get, patch

_README_LINKS = LinkTemplates({"self": APP_PATH + "/readme", "application": APP_PATH})

_README = Shown(GetReadme, ReadmeView, links=_README_LINKS)
ROUTES = (
    patch(
        APP_PATH + "/globals",
        "application.globals",
        "Change some globals of an application",
        PatchGlobals,
        scope="application.patch",
        body=Annotated[list[GlobalPatch], Meta(max_length=100)],
        query=SummaryChoice,
        to=APPLICATION_ACTOR,
        then=GetApplication,
        reply=ApplicationView,
        cli=True,
    ),
    get(
        APP_PATH + "/readme",
        "application.readme",
        "Get the readme of an application",
        _README,
        scope="application.get",
        cli=True,
    ),
    patch(
        APP_PATH + "/readme",
        "application.readmePatch",
        "Change the readme of an application",
        PatchReadme,
        _README,
        scope="application.patch",
        body=ReadmePatch,
        to=APPLICATION_ACTOR,
        cli=True,
    ),
    get(
        APP_PATH + "/search",
        "application.search",
        "Search the records of an application by name",
        Search,
        list[SearchResult],
        query=SearchChoice,
    ),
    get(
        APP_PATH + "/importLogs",
        "application.importLogs",
        "List the newest imports into an application",
        ListImportLogs,
        list[ImportLog],
        query=ImportLogRange,
    ),
)
