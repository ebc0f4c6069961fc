"""Which applications the dashboards of users and organizations may show: to whom, and in whose name.

Who writes the blocks or the parameters of a dashboard, or makes it public, must be able to read each application that
it names. A reader with a token sees what this token can read. A reader without one sees what the writer can read now,
and what the owner of the dashboard reaches.
"""

from __future__ import annotations

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.mandate import mandates_of
from trunkline.actors.core.values.errors import DomainError, Forbidden
from trunkline.actors.people.organizations.mandates import Authors
from trunkline.actors.people.organizations.roles import Level
from trunkline.actors.presentation.dashboards.block_data import application_of
from trunkline.actors.presentation.dashboards.checks import applications_named
from trunkline.actors.presentation.dashboards.holder import Holder, reaches
from trunkline.actors.presentation.dashboards.kind import AUTHORS, SHOWING
from trunkline.actors.presentation.dashboards.reads import Held
from trunkline.http.calls.access import check_access
from trunkline.http.calls.call import Call


def check_writer(call: Call, holder: Holder, named: Doc, old: Doc) -> None:
    """Raise unless the caller may read each application that a dashboard names after this change of it.

    `named` are the fields that the call has, `old` is the dashboard as it is. Changes that show nothing new need
    nothing.
    """
    if not SHOWING & named.keys() or (named.keys() & SHOWING == {"public"} and not named["public"]):
        return
    ids = applications_named({**old, **named})
    with call.service.system.store.snapshot() as snapshot:
        # What the owner of the dashboard does not reach is refused by the dashboard itself, which names the field.
        ids = {id for id in ids if holder.kind != "application" and reaches(snapshot, holder, id)}
    for id in sorted(ids):
        check_access(call, "application", id, Level.READ)


def refusals(call: Call, held: Held) -> dict[bytes, DomainError]:
    """The applications that a dashboard names and that may not be shown to the caller, each with the reason."""
    doc = held.found.doc
    found: dict[bytes, DomainError] = {}
    ids = {application_of(held.holder, block) for block in doc["blocks"]} - {None}
    for id in ids | applications_named(doc):
        assert id is not None
        try:
            if call.is_anonymous:
                _check_shown(call, held, id)
            else:
                check_access(call, "application", id, Level.READ)
        except DomainError as refusal:
            found[id] = refusal
    return found


def _check_shown(call: Call, held: Held, application: bytes) -> None:
    """Raise unless the owner of a dashboard and its writer reach an application. Nobody without a token is named."""
    system = call.service.system
    with system.store.snapshot() as snapshot:
        if not reaches(snapshot, held.holder, application):
            raise Forbidden("The owner of the dashboard does not reach the application of this block.")
    try:
        mandates = mandates_of(held.found.doc.get(AUTHORS))
        system.component(Authors).check_level(application, mandates, Level.READ)
    except DomainError:
        raise Forbidden(
            "Who wrote the dashboard may not see the application of this block any more. Somebody who may has to "
            "save its blocks, or make it public, again."
        ) from None
