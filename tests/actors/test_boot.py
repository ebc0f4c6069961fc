"""Opening, running and leaving a data directory; its users."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from tests.actors.house import START_MS, ManualClock
from trunkline.actors import boot, server_users
from trunkline.actors.core.runtime.loop_watch import LoopWatch
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.subscription import Ending
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.errors import Invalid, NotFound, Overloaded
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.store_errors import DirectoryInUse
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.record.messages import Listen
from trunkline.actors.maintenance import data_directory
from trunkline.actors.maintenance.verify import verify
from trunkline.actors.people.accounts import passwords
from trunkline.actors.people.accounts.messages import LogIn
from trunkline.actors.people.accounts.passwords import check_new_password
from trunkline.actors.platform.applications.messages import ApplicationPost, CreateApplication
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits
from trunkline.store import keys

PASSWORD = "Correct-horse-7"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=str(tmp_path / "data"))


async def create(system: System, name: str = "house") -> Ref:
    ref = Ref("application", ROOT, system.ids.new(system.clock.wall_ms()))
    await system.ask(ref, CreateApplication(user=ROOT, body=ApplicationPost(name=name)))
    return ref


def stored(system: System, ref: Ref) -> bool:
    with system.store.snapshot() as snapshot:
        return snapshot.get(keys.RECORDS, keys.record_key("application", ROOT, ref.id)) is not None


# Life.


async def test_what_was_acknowledged_is_there_after_a_restart(settings: Settings) -> None:
    with boot.opened(settings) as system:
        async with boot.running(system):
            ref = await create(system)
    with boot.opened(settings) as system:
        assert stored(system, ref)
        async with boot.running(system):
            with pytest.raises(NotFound):
                await system.ask(Ref("device", ref.id, ROOT), Listen())
            subscription = system.subscribe(ref, "topic", Listen())
        assert subscription.ending is Ending.DRAINING
    assert verify(Path(settings.data_dir)).ok


@pytest.mark.parametrize("way", ["leave", "raise", "cancel"])
async def test_what_waits_is_committed_however_the_body_ends(settings: Settings, way: str) -> None:
    refs: list[Ref] = []

    async def leave_before_the_commit(system: System) -> None:
        refs.append(Ref("application", ROOT, system.ids.new(START_MS)))
        with trio.CancelScope() as scope:
            scope.cancel()
            await system.ask(refs[0], CreateApplication(user=ROOT, body=ApplicationPost(name="a")))
        assert not stored(system, refs[0])

    with boot.opened(settings) as system:
        try:
            with trio.CancelScope() as outside:
                async with boot.running(system):
                    await leave_before_the_commit(system)
                    if way == "raise":
                        raise RuntimeError("the body fails")
                    if way == "cancel":
                        outside.cancel()
                        await trio.sleep_forever()
        except* RuntimeError:
            assert way == "raise"
        assert stored(system, refs[0])
        with pytest.raises(Overloaded, match="stopping"):
            await create(system)


async def test_a_directory_is_served_by_one(settings: Settings) -> None:
    in_use = pytest.raises(DirectoryInUse, match=settings.data_dir)
    with boot.opened(settings), in_use, boot.opened(settings):
        pass
    with boot.opened(settings):
        pass


async def test_a_body_that_fails_gives_the_directory_up(settings: Settings) -> None:
    with pytest.raises(RuntimeError, match="on purpose"), boot.opened(settings):
        raise RuntimeError("on purpose")
    with boot.opened(settings):
        pass


async def test_the_limits_of_the_settings_are_in_force(tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path / "data"), throttles=False)
    with boot.opened(settings) as system:
        assert system.limits is settings.limits


async def test_the_clock_is_a_seam(settings: Settings) -> None:
    with boot.opened(settings, ManualClock()) as system:
        async with boot.running(system):
            await server_users.add_user(system, "a@example.com", PASSWORD)
            assert [user.created for user in server_users.users(system)] == [iso(START_MS)]


# Users.


@pytest.mark.slow
async def test_the_first_user_is_made_once(settings: Settings) -> None:
    with boot.opened(settings) as system:
        async with boot.running(system):
            first = await server_users.ensure_first_user(system, settings)
            assert first is not None
            assert first.email == "admin@localhost"
            assert first.password is not None
            assert await server_users.ensure_first_user(system, settings) is None
            (user,) = server_users.users(system)
            ref = Ref("user", ROOT, bytes.fromhex(user.id))
            assert (await system.ask(ref, LogIn(password=first.password))).value
            assert not (await system.ask(ref, LogIn(password=first.password + "x"))).value
    assert first.password.encode() not in contents(Path(settings.data_dir))
    with boot.opened(settings) as system:
        async with boot.running(system):
            assert await server_users.ensure_first_user(system, settings) is None


def contents(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())


async def test_the_operators_password_is_not_told_back(tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path), admin_email="me@example.com", admin_password=PASSWORD)
    with boot.opened(settings) as system:
        async with boot.running(system):
            assert await server_users.ensure_first_user(system, settings) == server_users.FirstUser(
                "me@example.com", None
            )


def test_made_passwords_are_strong_and_differ() -> None:
    made = {server_users._new_password() for _ in range(100)}
    assert len(made) == 100
    for password in made:
        check_new_password(password)


async def test_passwords_are_hashed_in_as_many_threads_as_the_limits_say(tmp_path: Path) -> None:
    limits = Limits().override({"password_threads_max": 3})
    with boot.opened(Settings(data_dir=str(tmp_path / "data"), limits=limits)) as system:
        async with boot.running(system):
            assert passwords._turns.get().shares.places == 3


async def test_an_address_belongs_to_one_user(settings: Settings) -> None:
    with boot.opened(settings) as system:
        async with boot.running(system):
            await server_users.add_user(system, "a@example.com", PASSWORD)
            for taken in ("a@example.com", "A@Example.com"):
                with pytest.raises(Invalid, match="belongs to another user"):
                    await server_users.add_user(system, taken, PASSWORD)
            with pytest.raises(Invalid, match="password"):
                await server_users.add_user(system, "b@example.com", "weak")
            for wrong in ("a@b\r\nBcc: x", "a@b\n", "a b@c", "a@b@c", "ada", "@", "a\x00@b", "a@b\x7f", ""):
                with pytest.raises(Invalid, match=r"email: .* is not an e-mail address"):
                    await server_users.add_user(system, wrong, PASSWORD)
            assert [user.email for user in server_users.users(system)] == ["a@example.com"]
            assert system.active == 1


async def test_of_two_who_want_the_same_address_one_gets_it(settings: Settings) -> None:
    outcomes: list[Any] = []

    async def add(system: System) -> None:
        try:
            outcomes.append(await server_users.add_user(system, "a@example.com", PASSWORD))
        except Invalid as refusal:
            outcomes.append(refusal)

    with boot.opened(settings) as system:
        async with boot.running(system):
            async with trio.open_nursery() as callers:
                for _ in range(3):
                    callers.start_soon(add, system)
            assert len([outcome for outcome in outcomes if isinstance(outcome, str)]) == 1
            assert len(server_users.users(system)) == 1


async def test_a_new_password_replaces_the_old_one(settings: Settings) -> None:
    with boot.opened(settings) as system:
        async with boot.running(system):
            id = await server_users.add_user(system, "a@example.com", PASSWORD)
            await server_users.set_password(system, "A@example.com", "Another-horse-8")
            ref = Ref("user", ROOT, bytes.fromhex(id))
            assert not (await system.ask(ref, LogIn(password=PASSWORD))).value
            assert (await system.ask(ref, LogIn(password="Another-horse-8"))).value
            with pytest.raises(NotFound, match=r"There is no user b@example\.com"):
                await server_users.set_password(system, "b@example.com", PASSWORD)


# Care.


async def test_a_copy_holds_what_was_acknowledged(settings: Settings, tmp_path: Path) -> None:
    with boot.opened(settings) as system:
        async with boot.running(system):
            ref = await create(system)
    data_directory.back_up(Path(settings.data_dir), tmp_path / "copy")
    assert verify(tmp_path / "copy").ok
    with boot.opened(Settings(data_dir=str(tmp_path / "copy"))) as system:
        assert stored(system, ref)


async def test_a_new_secret_is_another_one(settings: Settings) -> None:
    with boot.opened(settings) as system:
        before = system.store.directory.secret()
        with pytest.raises(DirectoryInUse):
            data_directory.rotate_secret(Path(settings.data_dir))
    data_directory.rotate_secret(Path(settings.data_dir))
    with boot.opened(settings) as system:
        assert system.store.directory.secret() != before


async def test_what_is_wrong_is_found(settings: Settings) -> None:
    with boot.opened(settings) as system:
        async with boot.running(system):
            ref = await create(system)
        with system.store.memory_map.env.begin(write=True) as transaction:
            key = keys.record_key("application", ROOT, ref.id)
            transaction.delete(key, db=system.store.memory_map.handles[keys.RECORDS])
    report = verify(Path(settings.data_dir))
    left_behind = [problem for problem in report.problems if problem.startswith("indexes ")]
    assert len(left_behind) == 3
    assert report.problems == [
        *left_behind,
        f"records {keys.record_prefix('application', ROOT).hex()}: 0 are there, 1 are counted.",
    ]


def test_the_watchdog_of_the_loop_goes_on_where_the_owner_of_a_turn_cannot_be_read(
    settings: Settings,
) -> None:
    with boot.opened(settings) as system:
        system.store.memory_map.env.close()
        assert system.component(LoopWatch)._owner_of(ROOT) is None
