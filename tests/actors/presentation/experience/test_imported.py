"""What an import brings is stored also where a call of its own would be refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.actors.house import running_house
from tests.actors.presentation.experience.test_sites import SOMEBODY, ask, make, site
from trunkline.actors.core.records.messages import CreateRecord
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.presentation.experience.versions import VERSIONS, VersionPost
from trunkline.actors.presentation.experience.views import VIEWS, ViewPost
from trunkline.actors.workflows.flows.bodies import FlowPost, FlowVersionPost
from trunkline.actors.workflows.flows.messages import CreateFlow, CreateFlowVersion, VersionCreation

ID = bytes(range(12))


async def test_a_version_with_a_slash_and_a_view_that_is_no_template_are_imported(tmp_path: Path) -> None:
    async with running_house(tmp_path) as at:
        await make(at, VIEWS.name, ViewPost(name="a", view_type="page", body="{{#if}}"))
        version = CreateRecord(resource=VERSIONS.name, body=VersionPost(version="a/b"), by=SOMEBODY)
        with pytest.raises(Invalid, match="has a slash"):
            await ask(at, version)
        await ask(at, msgspec.structs.replace(version, import_id=ID))
        assert site(at, "a/b").version == "a/b"


async def test_a_version_of_a_workflow_with_a_slash_is_imported(tmp_path: Path) -> None:
    async with running_house(tmp_path) as at:
        flow = Ref("flow", at.application, at.system.ids.new(at.clock.wall_ms()))
        await at.system.ask(flow, CreateFlow(body=FlowPost(name="f"), by=SOMEBODY))
        message = CreateFlowVersion(body=FlowVersionPost(version="a/b"), query=VersionCreation(), by=SOMEBODY)
        with pytest.raises(Invalid, match="has a slash"):
            await at.system.ask(flow, message)
        made = await at.system.ask(flow, msgspec.structs.replace(message, import_id=ID))
        assert made.value.id == ID
        replaced = msgspec.structs.replace(message, query=VersionCreation(allow_replacement=True))
        assert (await at.system.ask(flow, replaced)).value.id == ID
