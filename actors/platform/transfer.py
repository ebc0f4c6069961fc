"""The transfer of applications and dashboards to another owner, a user or an organization.

All of it is one batch: the applications with their indexes, the dashboards at both owners. Whether the caller may give
from the source, and create in the destination, is checked by the caller of this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
import structlog
from msgspec import Meta

from trunkline.actors.core.records.messages import AdoptRecords, ReleaseRecords
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, Invalid, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Body, Message
from trunkline.actors.core.values.terms import Id
from trunkline.actors.platform.applications.messages import TransferApplication

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunkline.actors.core.runtime.system import System

_DASHBOARD: Final = "dashboard"
"""The name of the resource of dashboards that users and organizations own."""
_NOT_OWNED: Final = (Invalid, NotFound)
"""How an application refuses that is not there, or belongs to another owner. All else ends the transfer."""
_log = structlog.get_logger("trunkline.transfer")

_Ids = Annotated[list[Id], Meta(max_length=1000)]


class ResourceTransfer(Body, frozen=True):
    """What is given to which owner. With `strict`, everything or nothing; otherwise what the source owns."""

    destination_id: Id
    destination_type: Literal["user", "organization"]
    application_ids: _Ids = msgspec.field(default_factory=list)
    dashboard_ids: _Ids = msgspec.field(default_factory=list)
    strict: bool = False

    @property
    def destination(self) -> Ref:
        """The actor of the destination."""
        kind = "user" if self.destination_type == "user" else "org"
        return Ref(kind, ROOT, bytes.fromhex(self.destination_id))


async def transfer(system: System, source: Ref, body: ResourceTransfer) -> None:
    """Give applications and dashboards of `source` (a user or an organization) to another owner, in one batch.

    Applications of other partitions are given one by one before that batch, and given back if it is refused.

    Raises `Invalid` if the destination does not exist or is the source, or if nothing is given. With `strict` also if
    the source does not own one of the resources.
    """
    destination = body.destination
    if destination == source:
        raise Invalid("destinationId: is the owner already; name another one.")
    applications = _unique(body.application_ids)
    message = TransferApplication(
        owner=source.id, new_owner=destination.id, new_owner_type=body.destination_type
    )
    elsewhere = {id: ref for id in applications if system.is_elsewhere(ref := Ref("application", ROOT, id))}
    asks: list[tuple[Ref, Message]] = [
        (Ref("application", ROOT, id), message) for id in applications if id not in elsewhere
    ]
    refusals: dict[bytes, DomainError | None] = {}
    asks.append((source, ReleaseRecords(resource=_DASHBOARD, ids=_unique(body.dashboard_ids))))

    def adopt(answers: list[Any]) -> tuple[Ref, Message]:
        *given, dashboards = answers
        if isinstance(dashboards, DomainError):
            raise dashboards
        for answer in given:
            if isinstance(answer, DomainError) and not isinstance(answer, _NOT_OWNED):
                raise answer
        here = (id for id in applications if id not in elsewhere)
        answered = {**dict(zip(here, given, strict=True)), **refusals}
        kept = [id for id in applications if isinstance(answered[id], DomainError)]
        _check_given(body, kept, {id for id, _ in dashboards})
        return destination, AdoptRecords(resource=_DASHBOARD, records=dashboards)

    try:
        await _give(system, elsewhere, message, refusals)
        await system.ask_each(asks, adopt)
    except DomainError as refusal:
        back = TransferApplication(
            owner=destination.id,
            new_owner=source.id,
            new_owner_type="user" if source.kind == "user" else "organization",
        )
        given = {id: elsewhere[id] for id, refused in refusals.items() if refused is None}
        await _give_back(system, given, back)
        if not isinstance(refusal, NotFound):
            raise
        raise Invalid(f"destinationId: there is no {body.destination_type} {body.destination_id}.") from None


async def _give(
    system: System,
    applications: Mapping[bytes, Ref],
    message: TransferApplication,
    refusals: dict[bytes, DomainError | None],
) -> None:
    """Give applications of other partitions, one after the other; `refusals` gets by its id why one was not given.

    Raises what else ends a call, as where a process is gone; then the last one may have been given or not.
    """
    for id, ref in applications.items():
        refusals[id] = None
        try:
            await system.ask(ref, message)
        except _NOT_OWNED as refusal:
            refusals[id] = refusal


async def _give_back(system: System, applications: Mapping[bytes, Ref], message: TransferApplication) -> None:
    """Give back what was given of a transfer that is refused, as far as that is possible."""
    for id, ref in applications.items():
        try:
            await system.ask(ref, message)
        except _NOT_OWNED:
            continue  # it was not given, or is deleted
        except DomainError as failure:
            _log.error(
                "an application was given and not given back", application=id.hex(), reason=str(failure)
            )


def _check_given(body: ResourceTransfer, kept: list[bytes], dashboards: set[bytes]) -> None:
    """Raise `Invalid` if nothing is given, or if `strict` demands more. `kept` are applications of other owners."""
    wanted = [*_unique(body.application_ids), *_unique(body.dashboard_ids)]
    lost = [id for id in _unique(body.dashboard_ids) if id not in dashboards]
    missing = [f"applicationIds: there is no application {id.hex()}" for id in kept]
    missing += [f"dashboardIds: there is no dashboard {id.hex()}" for id in lost]
    if missing and body.strict:
        raise Invalid(f"{missing[0]} of this owner; nothing was transferred.")
    if len(missing) == len(wanted):
        raise Invalid(
            "applicationIds: and dashboardIds name nothing that belongs to this owner; name what to transfer."
        )


def _unique(ids: list[str]) -> list[bytes]:
    return [bytes.fromhex(id) for id in dict.fromkeys(each.lower() for each in ids)]
