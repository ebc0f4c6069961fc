"""The check of dashboards: what is stored already, or comes from elsewhere, stays as it is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.actors.engine.run_house import BY
from tests.actors.house import running_house
from trunkline.actors.core.records.messages import CreateRecord, PatchRecord
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.presentation.dashboards.messages import DashboardPatch, DashboardPost
from trunkline.actors.presentation.dashboards.resource import DASHBOARDS

WIDE = {"blockType": "section-header", "startX": 0, "startY": 0, "width": 99, "height": 2, "id": "a"}
LATER = {**WIDE, "startX": 1}


async def test_what_is_stored_stays_changeable(tmp_path: Path) -> None:
    async with running_house(tmp_path) as house:
        application, id = Ref("application", ROOT, house.application), bytes(range(12))
        parameter = {"name": "n", "type": "number", "defaultValue": "x"}
        body = {"name": "d", "blocks": [WIDE, WIDE], "contextConfiguration": [parameter]}
        post = msgspec.convert(body, DashboardPost)
        await house.system.ask(
            application, CreateRecord(resource=DASHBOARDS.name, body=post, by=BY, import_id=id)
        )

        async def patch(*blocks: object) -> None:
            changes = msgspec.convert({"blocks": blocks}, DashboardPatch)
            message = PatchRecord(resource=DASHBOARDS.name, record=id, body=changes, by=BY)
            await house.system.ask(application, message)

        await patch({**WIDE, "title": "t"}, WIDE)
        with pytest.raises(Invalid, match="startX 1, startY 0, width 99 and height 2 are no place"):
            await patch(WIDE, LATER)
        await patch(WIDE)
        with pytest.raises(Invalid, match="'a' is also the id of"):
            await patch(WIDE, WIDE)
