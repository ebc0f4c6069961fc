"""The experience of an application: its records, a first one at once, what is linked with what, and its deletion."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

from trunkline.actors.core.records.resource import Resource
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.shared_batch import Ask
from trunkline.actors.core.runtime.threads import SHORT, in_thread
from trunkline.actors.core.values.errors import DomainError, NotFound
from trunkline.actors.core.values.secret_texts import new_secret
from trunkline.actors.people.accounts.passwords import hash_password
from trunkline.actors.presentation.experience.bootstrap import (
    Bootstrap,
    BootstrapBody,
    BootstrapResult,
    Names,
)
from trunkline.actors.presentation.experience.domains import DOMAINS
from trunkline.actors.presentation.experience.endpoints import ENDPOINTS, EndpointRemoval
from trunkline.actors.presentation.experience.groups import GROUPS
from trunkline.actors.presentation.experience.linked import (
    ExperienceLinks,
    ExperienceLinksChoice,
    GetExperienceLinks,
)
from trunkline.actors.presentation.experience.log_in_flow import log_in_flow
from trunkline.actors.presentation.experience.removal import RemovalChoice, RemoveSome
from trunkline.actors.presentation.experience.rendering import check_view
from trunkline.actors.presentation.experience.slugs import SLUGS
from trunkline.actors.presentation.experience.stats import GetEndpointStats, StatPoint, StatsChoice
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS
from trunkline.actors.presentation.experience.versions import VERSIONS
from trunkline.actors.presentation.experience.views import VIEWS
from trunkline.actors.workflows.flows.bodies import FlowPatch, FlowPost
from trunkline.actors.workflows.flows.messages import CreateFlow, DeleteFlow, PatchFlow
from trunkline.actors.workflows.flows.selection import SelectOfClass
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import JSON
from trunkline.http.calls.request import Response
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.responses import SUCCESS
from trunkline.http.calls.route import APP_PATH, EXPERIENCE_ACTOR, FLOW_ACTOR, Route
from trunkline.http.calls.verbs import delete, get, patch
from trunkline.http.resources.workflows.triggered_flows import remove_with_flows

EXPERIENCE = APP_PATH + "/experience"


_CLI = (
    "experienceViews.get",
    "experienceViews.post",
    "experienceView.get",
    "experienceView.patch",
    "experienceView.delete",
    "experienceVersions.get",
    "experienceVersions.post",
    "experienceVersion.get",
    "experienceVersion.patch",
    "experienceVersion.delete",
    "experienceDomains.get",
    "experienceSlugs.get",
)
"""The operations of generated routes that a command line client uses."""


async def bootstrap(call: Call) -> Response:
    """Create a first experience: pages, endpoints, a group with a user, and the workflow that logs in.

    All of it is one batch. The password is shown only here.
    """
    service, by = call.service, call.principal.creator
    service.system.check_load()
    password = new_secret(12)
    message = Bootstrap(body=call.body, by=by, password_hash=await hash_password(password))
    found: list[bytes] = []
    if call.body.replace_existing:
        found = await service.read_message(
            SelectOfClass(application=call.application, flow_class="experience", name=Names("").flow)
        )
    flow = found[0] if found else service.system.ids.new(service.system.clock.wall_ms())

    def last(answers: list[Any]) -> Ask:
        (made,) = answers
        if isinstance(made, DomainError):
            raise made
        names = Names(made.suffix)
        body = log_in_flow(
            name=names.flow, endpoint=made.log_in_endpoint, page=made.log_in_page, home=names.home
        )
        ref = Ref("flow", call.application, flow)
        if not found:
            return ref, CreateFlow(body=msgspec.convert(body, FlowPost), by=by)
        del body["flowClass"]
        return ref, PatchFlow(body=msgspec.convert(body, FlowPatch), by=by)

    made, _ = await service.system.ask_each([(service.ref(call), message)], last)
    shown = {"resourceSuffix": made.suffix}
    if call.body.create_users:
        shown |= {"email": Names(made.suffix).email, "password": password}
    return Response(200, [JSON], msgspec.json.encode(shown))


async def delete_experience(call: Call) -> Response:
    """Delete the experience, but for what is to be kept. Repeat the call if it did not come to its end."""
    call.service.system.check_load()
    flows: list[bytes] = []
    if call.query.remove_workflows:
        flows = await call.service.read_message(
            SelectOfClass(application=call.application, flow_class="experience")
        )
    message = RemoveSome(query=call.query)
    while (await call.service.system.ask(call.service.ref(call), message)).value:
        pass  # each part is committed, and others have their turns between two parts
    for flow in flows:
        with suppress(NotFound):
            await call.service.system.ask(FLOW_ACTOR.ref({**call.ids, "flow": flow}), DeleteFlow())
    return Response(200, [JSON], SUCCESS)


def _linked_route(path: str, resource: Resource, noun: str, *, cli: bool = False) -> Route:
    return get(
        EXPERIENCE + path + "/linkedResources",
        f"{resource.name}.linkedResources",
        f"List what is linked with {noun}",
        GetExperienceLinks,
        ExperienceLinks,
        resource=resource,
        query=ExperienceLinksChoice,
        cli=cli,
    )


async def _checked(body: Any) -> Any:
    """Check the template of a view in a thread. What an import brings is not checked: it may be stored like that."""
    if isinstance(body.body, str):
        await in_thread(SHORT, check_view, body.body)
    return body


ROUTES = (
    patch(
        EXPERIENCE + "/bootstrap",
        "experience.bootstrap",
        "Create a first experience",
        bootstrap,
        to=EXPERIENCE_ACTOR,
        body=BootstrapBody,
        reply=BootstrapResult,
        cli=True,
    ),
    delete(
        EXPERIENCE,
        "experience.delete",
        "Delete an experience",
        delete_experience,
        to=EXPERIENCE_ACTOR,
        query=RemovalChoice,
    ),
    get(
        EXPERIENCE + "/endpoints/stats",
        "experienceEndpoints.stats",
        "Count the requests to endpoints",
        GetEndpointStats,
        dict[str, list[StatPoint]],
        query=StatsChoice,
    ),
    _linked_route("/endpoints/{experienceEndpointId}", ENDPOINTS, "an experience endpoint"),
    _linked_route("/views/{experienceViewId}", VIEWS, "an experience view", cli=True),
    *resource_routes(
        EXPERIENCE + "/endpoints",
        ENDPOINTS,
        to=EXPERIENCE_ACTOR,
        remove=EndpointRemoval,
        remover=remove_with_flows,
    ),
    *(
        replace(route, prepare=_checked) if route.method in ("POST", "PATCH") else route
        for route in resource_routes(EXPERIENCE + "/views", VIEWS, to=EXPERIENCE_ACTOR, cli=_CLI)
    ),
    *resource_routes(EXPERIENCE + "/versions", VERSIONS, to=EXPERIENCE_ACTOR, cli=_CLI),
    *resource_routes(EXPERIENCE + "/domains", DOMAINS, to=EXPERIENCE_ACTOR, cli=_CLI),
    *resource_routes(EXPERIENCE + "/slugs", SLUGS, to=EXPERIENCE_ACTOR, cli=_CLI),
    *resource_routes(EXPERIENCE + "/groups", GROUPS, to=EXPERIENCE_ACTOR),
    *resource_routes(EXPERIENCE + "/users", EXPERIENCE_USERS, to=EXPERIENCE_ACTOR),
)
