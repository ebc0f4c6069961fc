"""Tokens of the users of an experience: whom they are valid for, where, and until when."""

from __future__ import annotations

from pathlib import Path

import jwt
import pytest

from tests.actors.house import START_MS, House, running_house
from trunkline.actors.core.records import records
from trunkline.actors.core.records.messages import CreateRecord, Creator, DeleteRecord, PatchRecord
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Unauthorized
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.presentation.experience.kind import USER
from trunkline.actors.presentation.experience.tokens import ExperienceTokens, LoggedIn
from trunkline.actors.presentation.experience.users import (
    EXPERIENCE_USERS,
    ExperienceUserPatch,
    ExperienceUserPost,
)

NOBODY = Creator(type="user", id="0" * 24, name="somebody")


class Case:
    """A user of the experience of a new application, and the tokens of the server."""

    def __init__(self, at: House, user: bytes) -> None:
        self.house, self.user = at, user
        self.tokens = at.system.component(ExperienceTokens)
        self.ref = Ref("experience", at.application, at.application)

    def make(self, **more: object) -> str:
        now_ms = self.house.clock.wall_ms()
        return self.tokens.make_token(self.house.application, self.user, now_ms=now_ms, **more)  # type: ignore[arg-type]

    def check(self, token: str, application: bytes | None = None) -> LoggedIn:
        now_ms = self.house.clock.wall_ms()
        with self.house.system.store.snapshot() as snapshot:
            return self.tokens.check_token(snapshot, application or self.house.application, token, now_ms)

    def refused(self, token: str, application: bytes | None = None) -> str:
        with pytest.raises(Unauthorized) as caught:
            self.check(token, application)
        return caught.value.message

    async def change(self, **fields: str) -> None:
        body = ExperienceUserPatch(**fields)
        message = PatchRecord(resource=EXPERIENCE_USERS.name, record=self.user, body=body, by=NOBODY)
        await self.house.system.ask(self.ref, message)


async def case_of(at: House) -> Case:
    body = ExperienceUserPost(email="one@example.com", password="is hashed before")
    message = CreateRecord(resource=EXPERIENCE_USERS.name, body=body, by=NOBODY)
    made = await at.system.ask(Ref("experience", at.application, at.application), message)
    return Case(at, made.value.id)


async def test_a_token_is_valid_until_its_time(tmp_path: Path) -> None:
    async with running_house(tmp_path) as at:
        case = await case_of(at)
        token = case.make(ttl_s=60, data={"a": [1]})
        at.clock.pass_s(59.999)
        found = case.check(token)
        assert found.user.id == case.user
        ends = {"issuedAt": iso(START_MS), "expiresAt": iso(START_MS + 60_000)}
        assert found.auth_info == {**ends, "extraData": {"a": [1]}}
        at.clock.pass_s(0.001)
        assert "has expired" in case.refused(token)
        assert case.check(case.make()).auth_info["expiresAt"] is None


async def test_a_cutoff_ends_the_tokens_before_it_and_no_later_ones(tmp_path: Path) -> None:
    async with running_house(tmp_path) as at:
        case = await case_of(at)
        early = case.make()
        at.clock.pass_s(1)
        await case.change(token_cutoff=iso(at.clock.wall_ms()))
        assert "ended before its time" in case.refused(early)
        case.check(case.make())


async def test_tokens_end_with_the_user_or_a_cutoff(tmp_path: Path) -> None:
    """A new password alone does not end them."""
    async with running_house(tmp_path) as at:
        case = await case_of(at)
        token = case.make()
        await case.change(password="is hashed before, too")
        case.check(token)
        at.clock.pass_s(1)
        await case.change(token_cutoff=iso(at.clock.wall_ms()))
        assert "ended before its time" in case.refused(token)
        token = case.make()
        message = DeleteRecord(resource=EXPERIENCE_USERS.name, record=case.user)
        await at.system.ask(case.ref, message)
        with at.system.store.snapshot() as snapshot:
            assert records.find(snapshot, USER, at.application, case.user) is None
        assert "does not exist" in case.refused(token)


async def test_no_other_token_is_valid(tmp_path: Path) -> None:
    async with running_house(tmp_path) as at:
        case = await case_of(at)
        token = case.make()
        secret = at.system.store.directory.secret()
        of_api = jwt.encode({"sub": case.user.hex(), "iat": START_MS / 1000}, secret, algorithm="HS256")
        unsigned = jwt.encode({"sub": case.user.hex(), "iat": START_MS / 1000}, "", algorithm="none")
        for other in ("", "no token", of_api, unsigned, token[:-2], "a" * 10_000):
            assert "not one of this experience" in case.refused(other)
        assert "not one of this experience" in case.refused(token, bytes(12))
