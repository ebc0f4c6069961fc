"""Every kind of record is either portable, or left out of bundles for a reason; and each is declared by its package."""

from __future__ import annotations

from trunkline.actors.catalogue import FEATURES, KINDS
from trunkline.actors.portability.bundles.portable import IN_MANIFEST, PORTABLE
from trunkline.actors.portability.bundles.rights import ABOVE
from trunkline.http.routes import TABLE


def test_every_kind_is_portable_or_says_why_not() -> None:
    portable = {kind for each in PORTABLE for kind in each.kinds} | {*IN_MANIFEST}
    assert portable == {kind for kind in KINDS.values() if kind.not_portable is None}


def test_a_bundle_has_what_the_packages_say() -> None:
    assert {*PORTABLE} == {each for feature in FEATURES for each in feature.portable}


def test_each_says_by_which_operations_it_is_made() -> None:
    known = {route.operation for route in TABLE.routes if route.access == "write"}
    assert {name for each in PORTABLE for name in (each.created_by, each.changed_by)} <= known
    assert ABOVE == ("applicationCertificateAuthorities.post", "applicationCertificateAuthority.patch")
