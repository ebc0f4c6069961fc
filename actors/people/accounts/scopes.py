"""Scopes: which of them an operation accepts (specification, Authentication, rule 6). The one place that says it."""

from __future__ import annotations

from typing import Final, Literal

Area = Literal["application", "user", "organization", "public"]
"""What operations are about. Those of users and of organizations are for the tokens of users only."""

USER_AREAS: Final = frozenset({"user", "organization"})
_IN_APPLICATION: Final = {"all.User": "all.Application", "all.Organization": "all.Application"}


def scopes_of(operation: str, access: str, *, area: Area = "application", cli: bool = False) -> list[str]:
    """The scopes, of which a token of a user or of an application needs one."""
    families = ["all.Application", "all.Organization", "all.User"]
    if area in USER_AREAS:
        families = families[2:] if area == "user" else families[1:]
    scopes = list(families)
    if access == "read":
        scopes += [f"{family}.read" for family in families]
    if cli:
        scopes += [f"{family}.cli" for family in families if family != "all.Organization"]
    return [*scopes, f"{operation.split('.')[0]}.*", operation]


def scopes_within(scopes: frozenset[str]) -> frozenset[str]:
    """The scopes that remain of a token's within one application: those that the token of an application may have."""
    kept = set()
    for scope in scopes:
        family, _, kind = scope.rpartition(".") if scope.count(".") == 2 else (scope, "", "")
        within = _IN_APPLICATION.get(family, family)
        kept.add(f"{within}.{kind}" if kind else within)
    return frozenset(kept)
