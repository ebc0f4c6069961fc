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
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import LinkTemplates
from trunkline.http.calls.verbs import get, list_of

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
    list_of(
        TEMPLATES,
        "applicationTemplates.get",
        "List the application templates",
        list_templates,
        TemplateView,
        TemplatePage,
        links=LinkTemplates({"self": TEMPLATES}, _SELF),
        area="user",
        beside={"keywords": list[str], "categoryId": str},
    ),
    get(
        TEMPLATES + "/categories",
        "applicationTemplates.getCategories",
        "List the categories of application templates",
        list_categories,
        Categories,
        query=CategoryChoice,
        area="user",
    ),
    get(
        TEMPLATES + "/keywords",
        "applicationTemplates.getUniqueKeywords",
        "List the keywords of all application templates",
        list_keywords,
        Keywords,
        area="user",
    ),
    get(
        TEMPLATES + "/{templateId}",
        "applicationTemplate.get",
        "Get an application template",
        get_template,
        TemplateView,
        links=LinkTemplates(_SELF),
        area="user",
    ),
)
