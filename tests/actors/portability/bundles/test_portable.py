"""Every kind of record is either portable, or left out of bundles for a reason."""

from __future__ import annotations

from typing import get_args

from trunkline.actors.catalogue import KINDS
from trunkline.actors.portability.bundles.portable import (
    BY_NAME,
    IN_MANIFEST,
    NOT_PORTABLE,
    PORTABLE,
    ResourceName,
)


def test_every_kind_is_portable_or_has_a_reason() -> None:
    portable = {kind.name for each in PORTABLE for kind in each.kinds} | {kind.name for kind in IN_MANIFEST}
    assert not portable & NOT_PORTABLE.keys()
    assert portable | NOT_PORTABLE.keys() == KINDS.keys()


def test_each_name_is_one_of_an_import_and_stands_once() -> None:
    assert BY_NAME.keys() <= set(get_args(ResourceName))
    assert len(BY_NAME) == len(PORTABLE)
