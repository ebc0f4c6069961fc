"""Scopes: which of them an operation accepts (specification, Authentication, rule 6). The one place that says it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from trunkline.actors.core.values.errors import Forbidden

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


def check_reads(scopes: frozenset[str], operation: str) -> None:
    """Raise `Forbidden` unless a token with these scopes may read what an operation reads.

    For an operation that shows what others read: a dashboard, or the trial of an alarm rule.
    """
    if not may_read(scopes, operation):
        raise no_scope(operation, scopes_of(operation, "read"))


def may_read(scopes: frozenset[str], operation: str) -> bool:
    """Whether a token with these scopes may read what an operation of applications reads."""
    return not scopes.isdisjoint(scopes_of(operation, "read"))


def no_scope(operation: str, accepted: Iterable[str]) -> Forbidden:
    """The refusal of a token that has none of the scopes that an operation accepts."""
    return Forbidden(
        f"The token has no scope for {operation}; it needs one of {', '.join(sorted(accepted))}."
    )


def scopes_within(scopes: frozenset[str]) -> frozenset[str]:
    """The scopes that remain of a token's within one application: those that the token of an application may have."""
    kept = set()
    for scope in scopes:
        family, _, kind = scope.rpartition(".") if scope.count(".") == 2 else (scope, "", "")
        within = _IN_APPLICATION.get(family, family)
        kept.add(f"{within}.{kind}" if kind else within)
    return frozenset(kept)
