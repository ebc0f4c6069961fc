"""What each package of the wing adds, in the order of the packages."""

from __future__ import annotations

from typing import Final

from trunkline.actors.people.accounts.feature import FEATURE as ACCOUNTS
from trunkline.actors.people.audit.feature import FEATURE as AUDIT
from trunkline.actors.people.organizations.feature import FEATURE as ORGANIZATIONS

FEATURES: Final = (
    ACCOUNTS,
    ORGANIZATIONS,
    AUDIT,
)
