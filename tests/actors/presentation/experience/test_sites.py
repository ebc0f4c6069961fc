"""Sites in memory: how long they are kept, and that a change is seen at once."""

from __future__ import annotations

from pathlib import Path

from tests.actors.house import House, running_house
from trunkline.actors.core.records.messages import CreateRecord, Creator, PatchRecord
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.structs import Body, Message
from trunkline.actors.presentation.experience.content import DEVELOP_NAME
from trunkline.actors.presentation.experience.counts import AddCounts
from trunkline.actors.presentation.experience.sites import Site, Sites
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS, ExperienceUserPost
from trunkline.actors.presentation.experience.versions import VERSIONS, VersionPost
from trunkline.actors.presentation.experience.views import VIEWS, ViewPatch, ViewPost
from trunkline.limits.table import Limits

SOMEBODY = Creator(type="user", id="0" * 24, name="somebody")


async def ask(at: House, message: Message) -> bytes:
    answer = await at.system.ask(Ref("experience", at.application, at.application), message)
    return answer.value.id if isinstance(message, CreateRecord) else b""


async def make(at: House, resource: str, body: Body) -> bytes:
    return await ask(at, CreateRecord(resource=resource, body=body, by=SOMEBODY))


def site(at: House, version: str = DEVELOP_NAME) -> Site:
    found = at.system.component(Sites).get(at.application, version)
    assert found is not None
    return found


async def test_a_site_is_kept_until_what_it_serves_changes(tmp_path: Path) -> None:
    async with running_house(tmp_path) as at:
        view = await make(at, VIEWS.name, ViewPost(name="a", view_type="page", body="1"))
        first = site(at)
        assert site(at) is first
        await make(at, EXPERIENCE_USERS.name, ExperienceUserPost(email="a@example.com", password="hashed"))
        await ask(at, AddCounts(counts=[(0, bytes(12), {"0 200 a develop": 1})]))
        assert site(at) is first, "users and counts are no part of it"
        patch = PatchRecord(resource=VIEWS.name, record=view, body=ViewPatch(body="2"), by=SOMEBODY)
        await ask(at, patch)
        assert site(at).view_docs[view.hex()]["body"] == "2"
        assert first.view_docs[view.hex()]["body"] == "1"
        assert at.system.component(Sites).get(at.application, "unknown") is None
        assert at.system.component(Sites).get(bytes(12), DEVELOP_NAME) is None


async def test_the_bytes_of_kept_sites_are_bounded(tmp_path: Path) -> None:
    limits = Limits.off().override({"experience_sites_bytes_max": 5_000})
    async with running_house(tmp_path, limits=limits) as at:
        await make(at, VIEWS.name, ViewPost(name="a", view_type="page", body="x" * 3_000))
        await make(at, VERSIONS.name, VersionPost(version="v1"))
        named, develop = site(at, "v1"), site(at)
        assert site(at) is develop
        assert site(at, "v1") is not named, "there is no room for both"
