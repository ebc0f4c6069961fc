"""What accounts add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.people.accounts.actor import User
from trunkline.actors.people.accounts.ended_logins import ENDED_LOGINS
from trunkline.actors.people.accounts.recent_items import RECENT_ITEMS
from trunkline.actors.people.accounts.sso import SSO_LOGINS
from trunkline.actors.people.accounts.tokens import APPLICATION_TOKENS, USER_TOKENS
from trunkline.actors.people.accounts.two_factor import TWO_FACTOR

FEATURE: Final = Feature(
    kinds=(RECENT_ITEMS, SSO_LOGINS, TWO_FACTOR, ENDED_LOGINS),
    resources=(APPLICATION_TOKENS, USER_TOKENS),
    actors=(User,),
)
