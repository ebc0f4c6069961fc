"""Application templates: ready-made contents of applications, from a catalogue that only the operator changes."""

from __future__ import annotations

from trunkline.actors.portability.templates.catalogue import Catalogue
from trunkline.actors.portability.templates.messages import (
    Categories,
    CategoryChoice,
    Keywords,
    TemplatePage,
    TemplateView,
)
from trunkline.http.calls.call import Call
from trunkline.http.calls.dispatch import json_response
from trunkline.http.calls.request import Response
from trunkline.http.calls.route import LinkTemplates, Route

TEMPLATES = "/applicationTemplates"
_SELF = {"self": TEMPLATES + "/{templateId}"}


def _catalogue(call: Call) -> Catalogue:
    return call.service.system.component(Catalogue)


async def list_templates(call: Call) -> Response:
    """The catalogue is read at the start of the server."""
    return json_response(call, 200, _catalogue(call).list_templates(call.query))


async def get_template(call: Call) -> Response:
    """Its `summary` counts what it creates."""
    return json_response(call, 200, _catalogue(call).get(call.ids["template"]))


async def list_categories(call: Call) -> Response:
    """A category comes before those below it."""
    return json_response(call, 200, _catalogue(call).list_categories(call.query))


async def list_keywords(call: Call) -> Response:
    """Each keyword once, in the order of the alphabet."""
    return json_response(call, 200, {"keywords": _catalogue(call).unique_keywords})


ROUTES = (
    Route(
        method="GET",
        path=TEMPLATES,
        operation="applicationTemplates.get",
        summary="List the application templates",
        query=TemplatePage,
        reply=("list", TemplateView),
        links=LinkTemplates({"self": TEMPLATES}, _SELF),
        area="user",
        handler=list_templates,
    ),
    Route(
        method="GET",
        path=TEMPLATES + "/categories",
        operation="applicationTemplates.getCategories",
        summary="List the categories of application templates",
        query=CategoryChoice,
        reply=Categories,
        area="user",
        handler=list_categories,
    ),
    Route(
        method="GET",
        path=TEMPLATES + "/keywords",
        operation="applicationTemplates.getUniqueKeywords",
        summary="List the keywords of all application templates",
        reply=Keywords,
        area="user",
        handler=list_keywords,
    ),
    Route(
        method="GET",
        path=TEMPLATES + "/{templateId}",
        operation="applicationTemplate.get",
        summary="Get an application template",
        reply=TemplateView,
        links=LinkTemplates(_SELF),
        area="user",
        handler=get_template,
    ),
)
