"""Names that are unique in the server are claimed by one process at a time."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.actors.maintenance.partition_houses import divided, partitions
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Overloaded
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.platform.applications.messages import ApplicationPatch, PatchApplication


async def test_a_name_is_not_claimed_while_another_process_claims_one(tmp_path: Path) -> None:
    first = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", first) as (house, other):
        others = other.system.store.partitions
        assert others is not None
        slug = PatchApplication(body=msgspec.convert({"endpointSlug": "first"}, ApplicationPatch))
        assert others.hold_names()
        with pytest.raises(Overloaded, match="claims a name just now"):
            await house.system.ask(Ref("application", ROOT, first), slug)
        others.release_names()
        await house.system.ask(Ref("application", ROOT, first), slug)
