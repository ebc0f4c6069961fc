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
from trunkline.http.calls.route import APP_PATH, APPLICATION_ACTOR, LinkTemplates, Route

_README_LINKS = LinkTemplates({"self": APP_PATH + "/readme", "application": APP_PATH})

ROUTES = (
    Route(
        method="PATCH",
        path=APP_PATH + "/globals",
        operation="application.globals",
        scope="application.patch",
        summary="Change some globals of an application",
        message=PatchGlobals,
        body=Annotated[list[GlobalPatch], Meta(max_length=100)],
        query=SummaryChoice,
        to=APPLICATION_ACTOR,
        then=GetApplication,
        reply=ApplicationView,
        access="write",
        cli=True,
    ),
    Route(
        method="GET",
        path=APP_PATH + "/readme",
        operation="application.readme",
        scope="application.get",
        summary="Get the readme of an application",
        message=GetReadme,
        reply=ReadmeView,
        links=_README_LINKS,
        cli=True,
    ),
    Route(
        method="PATCH",
        path=APP_PATH + "/readme",
        operation="application.readmePatch",
        scope="application.patch",
        summary="Change the readme of an application",
        message=PatchReadme,
        body=ReadmePatch,
        to=APPLICATION_ACTOR,
        then=GetReadme,
        reply=ReadmeView,
        links=_README_LINKS,
        access="write",
        cli=True,
    ),
    Route(
        method="GET",
        path=APP_PATH + "/search",
        operation="application.search",
        summary="Search the records of an application by name",
        message=Search,
        query=SearchChoice,
        reply=list[SearchResult],
    ),
    Route(
        method="GET",
        path=APP_PATH + "/importLogs",
        operation="application.importLogs",
        summary="List the newest imports into an application",
        message=ListImportLogs,
        query=ImportLogRange,
        reply=list[ImportLog],
    ),
)
