"""Operators of the server: users who may see what concerns all of its tenants.

Owns the check of a caller. Who is one is said on the command line (`trunkline user operator`), never by the API.
"""

from __future__ import annotations

from typing import Final

from trunkline.actors.access.authority import Principal
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import USER
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.errors import Forbidden
from trunkline.actors.core.values.ids import ROOT

HINT: Final = (
    "The figures of the whole server are for its operators: `trunkline user operator EMAIL` makes one."
)


def check_operator(system: System, principal: Principal) -> None:
    """Raise `Forbidden` unless the token is that of an operator."""
    if principal.user_id is not None:
        with system.store.snapshot() as snapshot:
            user = records.find(snapshot, USER, ROOT, principal.user_id)
        if user is not None and user.doc.get("isOperator"):
            return
    raise Forbidden(HINT)
