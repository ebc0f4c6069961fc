"""All routes of the wing."""

from __future__ import annotations

from typing import Final

from trunkline.http.resources.people import (
    account,
    audit_logs,
    auth,
    browser_login,
    email,
    me,
    organizations,
    single_sign_on,
)

ROUTES: Final = (
    *auth.ROUTES,
    *browser_login.ROUTES,
    *single_sign_on.ROUTES,
    *me.ROUTES,
    *account.ROUTES,
    *email.ROUTES,
    *organizations.ROUTES,
    *audit_logs.ROUTES,
)
