"""What accounts add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.people.accounts.actor import User
from trunkline.actors.people.accounts.application_log_ins import ApplicationLogIns
from trunkline.actors.people.accounts.email_links import EmailLinks
from trunkline.actors.people.accounts.ended_logins import ENDED_LOGINS
from trunkline.actors.people.accounts.recent_items import RECENT_ITEMS
from trunkline.actors.people.accounts.sso import SSO_LOGINS, SingleSignOn
from trunkline.actors.people.accounts.tokens import APPLICATION_TOKENS, USER_TOKENS
from trunkline.actors.people.accounts.two_factor import TWO_FACTOR


def _parts(start: Start) -> Iterator[object]:
    limits = start.system.limits
    yield EmailLinks(start.secret)
    yield ApplicationLogIns(limits, start.system.clock)
    yield SingleSignOn(start.settings, limits, start.secret)


FEATURE: Final = Feature(
    parts=_parts,
    kinds=(RECENT_ITEMS, SSO_LOGINS, TWO_FACTOR, ENDED_LOGINS),
    resources=(APPLICATION_TOKENS, USER_TOKENS),
    actors=(User,),
)
