"""What dashboards may show of applications: to whom, and in whose name.

Who writes the blocks or the parameters of a dashboard, or makes it public, must be able to read each application that
it names. A reader with a token sees what this token can read, by the operations that have a scope for it. A reader
without one sees what the writer can read now, with the token that was used, and what the owner of the dashboard
reaches.
"""

from __future__ import annotations

from functools import partial

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.mandate import Mandates, mandates_of
from trunkline.actors.core.values.errors import DomainError, Forbidden
from trunkline.actors.people.accounts.scopes import check_reads
from trunkline.actors.people.organizations.mandates import Authors
from trunkline.actors.people.organizations.roles import Level
from trunkline.actors.presentation.dashboards.checks import applications_named
from trunkline.actors.presentation.dashboards.holder import Holder, reaches
from trunkline.actors.presentation.dashboards.kind import AUTHORS, SHOWING
from trunkline.actors.presentation.dashboards.reads import Held
from trunkline.actors.presentation.dashboards.rights import CheckRead, Read, Refusals, refusals_of
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


def refusals(call: Call, held: Held) -> Refusals:
    """What of the applications of a dashboard may not be shown to the caller, each with the reason."""

    def check(application: bytes) -> CheckRead:
        if call.is_anonymous:
            return _check_shown(call, held, application)
        check_access(call, "application", application, Level.READ)
        return partial(check_reads, call.principal.scopes)

    return refusals_of(held.holder, held.found.doc, check)


def _check_shown(call: Call, held: Held, application: bytes) -> CheckRead:
    """Raise unless the owner of a dashboard and its writer reach an application. Nobody without a token is named."""
    system = call.service.system
    with system.store.snapshot() as snapshot:
        if not reaches(snapshot, held.holder, application):
            raise Forbidden("The owner of the dashboard does not reach the application of this block.")
    authors, mandates = system.component(Authors), mandates_of(held.found.doc.get(AUTHORS))
    try:
        authors.check_level(application, mandates, Level.READ)
    except DomainError:
        raise Forbidden(
            "Who wrote the dashboard may not see the application of this block any more. Somebody who may has to "
            "save its blocks, or make it public, again."
        ) from None
    return partial(_check_written, authors, application, mandates)


def _check_written(authors: Authors, application: bytes, mandates: Mandates, operation: Read) -> None:
    """Raise unless the token with which a dashboard was written may read what an operation reads."""
    try:
        authors.check(application, mandates, operation, "read")
    except DomainError:
        raise Forbidden(
            f"The token with which the dashboard was written has no scope for {operation}. Somebody who may read this "
            "has to save its blocks, or make it public, again."
        ) from None
