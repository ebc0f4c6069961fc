"""Start-up: opens the store of a data directory, creates the actor system on it, and creates the first user.

The server and the command line start here, so neither of them imports the store. The file is long because all parts of
a system are put together here.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import trio

from trunkline.actors.access.authority import find_user
from trunkline.actors.catalogue import ACTORS, FEATURES, JOB_KINDS, RESOURCES, UPLOADS
from trunkline.actors.connections.integrations.connections import Connections
from trunkline.actors.connections.webhooks.connections import WebhookConnections
from trunkline.actors.core.contents.uploads import Uploads
from trunkline.actors.core.outgoing.mail import Mail
from trunkline.actors.core.records import records
from trunkline.actors.core.records.feature import Start
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.records.listing import ids_of_facet
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.runtime import threads
from trunkline.actors.core.runtime.loop_watch import LoopWatch
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.actors.core.values.clock import Clock, SystemClock
from trunkline.actors.core.values.errors import DomainError, Invalid, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Created, Message
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.fleet.devices.commands.links import Links
from trunkline.actors.fleet.devices.state.arrays import load_arrays
from trunkline.actors.fleet.devices.state.backlog import BacklogLane
from trunkline.actors.fleet.devices.state.inactivity import Inactivity
from trunkline.actors.maintenance.data_directory import bucket_of, keys_file_of
from trunkline.actors.maintenance.retention import Retention
from trunkline.actors.maintenance.sweep import run_sweep
from trunkline.actors.people.accounts.messages import (
    CreateUser,
    DeleteUser,
    SetOperator,
    SetPassword,
    VerifyEmail,
)
from trunkline.actors.people.accounts.passwords import check_new_password, use_threads
from trunkline.actors.people.accounts.two_factor import ResetTwoFactor
from trunkline.actors.people.organizations.membership import MEMBER, check_other_admin, memberships
from trunkline.actors.people.organizations.messages import RemoveMember
from trunkline.actors.platform.applications.messages import DeleteApplication
from trunkline.actors.platform.jobs.notifications import Notifier
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.actors.platform.jobs.results import Results
from trunkline.actors.platform.jobs.runner import Jobs
from trunkline.actors.portability.archives.schedule import run_schedule
from trunkline.actors.presentation.experience.counts import RequestCounts
from trunkline.actors.readers import read
from trunkline.actors.workflows.triggers.timers import Timers
from trunkline.limits.settings import Settings
from trunkline.store.env import Store
from trunkline.store.settler import Settler
from trunkline.store.simulated_disk import SimulatedDisk, write_calls

__all__ = [
    "FirstUser",
    "UserLine",
    "add_user",
    "delete_account",
    "delete_user",
    "ensure_first_user",
    "opened",
    "reset_two_factor",
    "running",
    "set_operator",
    "set_password",
    "users",
    "verify_email",
]


class FirstUser(NamedTuple):
    """The user that was created at the first start. `password` is None if the operator chose it."""

    email: str
    password: str | None


class UserLine(NamedTuple):
    """A user in the list of the command line."""

    id: str
    email: str
    created: str


@contextmanager
def opened(settings: Settings, clock: Clock | None = None) -> Iterator[System]:
    """Open the data directory and create the actor system on it; nothing runs yet.

    If the body raises and the directory was made here, it is removed, unless `store.directory.keep` was called.
    Raises `StoreError` if the directory is in use, of a newer format, or broken.
    """
    limits = settings.limits
    store = Store.open(
        Path(settings.data_dir),
        encryption_keys=keys_file_of(settings),
        bucket=bucket_of(settings),
        part_bytes=limits.blobs_part_bytes,
        file_threads_max=limits.file_threads_max,
        map_size_bytes=settings.map_size_bytes,
        store_size_max_bytes=settings.store_size_max_bytes,
        journal_bytes_max=limits.journal_bytes_max,
        journal_batches_max=limits.journal_batches_max,
        arrival_window_bytes=limits.arrival_window_bytes,
        arrivals_bytes_max=limits.arrivals_bytes_max,
        read_threads_max=limits.read_threads_max,
        read_queue_length_max=limits.read_queue_length_max,
        start_check_s=limits.start_check_s,
        sync_delay_s=_sync_delay(settings),
        outbox_length_max=limits.outbox_length_max,
    )
    try:
        system = System(store, limits, clock or SystemClock(), ACTORS)
        add_parts(system, settings)
        yield system
    except BaseException:
        store.directory.discard()
        raise
    finally:
        store.close()


def _sync_delay(settings: Settings) -> Callable[[], float] | None:
    """The delay of commits by a simulated disk, if there is one."""
    delay_s = settings.sync_delay_ms / 1000
    if settings.disk_writes_per_s:
        return SimulatedDisk(delay_s, settings.disk_writes_per_s, write_calls()).delay_s
    return (lambda: delay_s) if delay_s else None


async def settle(system: System) -> None:
    """Bring all that devices reported into runs, for measurements of what states cost on the disk."""
    await system.component(Settler).settle_all()


def _owner_of(system: System, application: bytes) -> str | None:
    """The id of the owner of an application; None if it is deleted."""
    with system.store.snapshot() as snapshot:
        found = records.find(snapshot, APPLICATION, ROOT, application)
    return None if found is None else found.doc["ownerId"]


def add_parts(system: System, settings: Settings) -> None:
    """Add the components of a system: what packages add by their features, and what needs all features."""
    system.add_component(system.store.keyring)
    system.add_component(LoopWatch(system.limits, system.clock.wall_ms, partial(_owner_of, system)))
    owners = Owners(system)
    system.add_component(owners)
    system.payer = owners.of_work
    start = Start(system, settings, system.store.directory.secret(), partial(read, system))
    for feature in FEATURES:
        for part in feature.parts(start):
            system.add_component(part)
    system.add_component(RESOURCES)
    system.add_component(Uploads(system, UPLOADS))
    queue = JobQueue(
        JOB_KINDS,
        places=system.limits.jobs_running_max,
        payer_of=lambda owner: (owners.of if owner.kind == "application" else owners.payer)(owner.id),
        calls_private_networks=settings.callback_private_networks,
    )
    system.add_component(queue)
    notifier = Notifier(settings, system.limits, system.component(Mail), system.component(Results))
    system.add_component(Jobs(system, queue, notifier))
    system.add_component(Retention(system))


@asynccontextmanager
async def running(system: System) -> AsyncIterator[System]:
    """Run the system, its background tasks and the jobs while the body runs; at its end commit what still waits."""
    use_threads(system.limits.password_threads_max, system.payer)
    threads.charge(system.payer)
    if has_applications(system):
        await load_arrays()
    async with trio.open_nursery() as nursery:
        await nursery.start(system.run)
        nursery.start_soon(system.component(Settler).run)
        await nursery.start(system.component(ScriptPool).run)
        # Before the workflows, which may publish to them.
        await nursery.start(system.component(Connections).run)
        await nursery.start(system.component(FlowRunner).run)
        await nursery.start(system.component(WebhookConnections).run)
        nursery.start_soon(system.component(Inactivity).run)
        await system.component(Links).recover()
        nursery.start_soon(system.component(Links).run)
        nursery.start_soon(system.component(BacklogLane).run)
        await nursery.start(system.component(Timers).run)
        nursery.start_soon(run_sweep, system)
        nursery.start_soon(system.component(Retention).run)
        await nursery.start(system.component(Jobs).run)
        nursery.start_soon(run_schedule, system)
        nursery.start_soon(system.component(RequestCounts).run)
        try:
            yield system
        finally:
            await system.component(FlowRunner).stop()
            await system.component(Jobs).stop()
            await system.component(RequestCounts).store()
            system.drain()
            nursery.cancel_scope.cancel()


# Users, for the command line and the first start.


async def ensure_first_user(system: System, settings: Settings) -> FirstUser | None:
    """Create the first user of a new data directory; None if there is a user already.

    E-mail address and password come from the settings. Without a password there, one is generated, which the
    caller shows once. Its text is not stored.
    """
    if users(system):
        return None
    email = settings.admin_email or "admin@localhost"
    password = settings.admin_password or _new_password()
    await add_user(system, email, password)
    return FirstUser(email, None if settings.admin_password else password)


async def add_user(system: System, email: str, password: str) -> str:
    """Create a user and return the id; the first one is an operator.

    Raises `Invalid` if the address is taken or the password is weak.
    """
    check_new_password(password)
    is_first = not users(system)
    ref = Ref("user", ROOT, system.ids.new(system.clock.wall_ms()))
    name = email.partition("@")[0] or email
    answer = await system.ask(ref, CreateUser(email=email, password=password, first_name=name))
    created: Created = answer.value
    if is_first:
        await system.ask(ref, SetOperator(is_operator=True))
    return created.id.hex()


async def set_operator(system: System, email: str, *, is_operator: bool) -> None:
    """Make a user an operator, who may read the figures of the whole server, or end that."""
    await system.ask(Ref("user", ROOT, _user_id(system, email)), SetOperator(is_operator=is_operator))


async def set_password(system: System, email: str, password: str) -> None:
    """Set a user's password and revoke all tokens that were issued before."""
    check_new_password(password)
    await system.ask(Ref("user", ROOT, _user_id(system, email)), SetPassword(password=password))


async def reset_two_factor(system: System, email: str) -> None:
    """Let a user log in without a second factor."""
    await system.ask(Ref("user", ROOT, _user_id(system, email)), ResetTwoFactor())


async def verify_email(system: System, email: str) -> None:
    """Note that the e-mail address of a user is verified: the operator says so."""
    user = _user_id(system, email)
    with system.store.snapshot() as snapshot:
        found = records.find(snapshot, USER, ROOT, user)
    if found is not None:
        await system.ask(Ref("user", ROOT, user), VerifyEmail(email=found.doc["email"]))


def _user_id(system: System, email: str) -> bytes:
    """The id of the user with this e-mail address. Raises `NotFound`."""
    with system.store.snapshot() as snapshot:
        user = find_user(snapshot, email)
    if user is None:
        raise NotFound(f"There is no user {email}.")
    return user


async def delete_user(system: System, email: str, *, with_applications: bool) -> int:
    """Delete a user and revoke all tokens; returns the number of applications that were deleted.

    Raises `Invalid` if the user owns applications and they are not to be deleted, or is the only user. If the process
    ends in between, some of the applications are deleted; the command can be repeated.
    """
    user = _user_id(system, email)
    with system.store.snapshot() as snapshot:
        owned = records.total(snapshot, APPLICATION, ROOT, user.hex())
        alone = records.total(snapshot, USER, ROOT) == 1
    if owned and not alone and not with_applications:
        raise Invalid(
            f"{email} owns applications: {owned}. Delete them first, or use --with-applications, "
            "which deletes them with their devices and data."
        )
    return await delete_account(system, user)


async def delete_account(system: System, user: bytes) -> int:
    """Delete a user with the user's applications, memberships and all else; returns the number of applications.

    Raises `Invalid` if it is the only user, or the only administrator of an organization. If the process ends in
    between, some of the applications are deleted; the call can be repeated.
    """
    with system.store.snapshot() as snapshot:
        alone = records.total(snapshot, USER, ROOT) == 1
        joined = list(memberships(snapshot, user))
        for each in joined:
            if each.role == "admin":
                check_other_admin(records.scan(snapshot, MEMBER, each.org), each.org, user)
    deleted = 0 if alone else await _delete_applications(system, user)

    def then_delete(answers: list[Any]) -> tuple[Ref, Message]:
        for answer in answers:
            if isinstance(answer, DomainError) and not isinstance(answer, NotFound):  # left in the meantime
                raise answer
        return Ref("user", ROOT, user), DeleteUser()

    leaving = RemoveMember(member=user)
    await system.ask_each([(Ref("org", ROOT, each.org), leaving) for each in joined], then_delete)
    # Those that calls in progress have created since. There can be no further ones: the user's tokens have ended.
    return deleted + await _delete_applications(system, user)


async def _delete_applications(system: System, user: bytes) -> int:
    with system.store.snapshot() as snapshot:
        owned = list(ids_of_facet(snapshot, APPLICATION, ROOT, user.hex()))
    for application in owned:
        with suppress(NotFound):  # deleted in the meantime
            await system.ask(Ref("application", ROOT, application), DeleteApplication())
    return len(owned)


def has_applications(system: System) -> bool:
    """Whether there is an application, and so may be a device."""
    with system.store.snapshot() as snapshot:
        return records.total(snapshot, APPLICATION, ROOT) > 0


def users(system: System) -> list[UserLine]:
    """Return all users, oldest first."""
    with system.store.snapshot() as snapshot:
        return [
            UserLine(id.hex(), doc["email"], iso(doc["creationDate"]))
            for id, doc in records.scan(snapshot, USER, ROOT)
        ]


def _new_password() -> str:
    """Return 21 random characters, with one of each class that a password needs."""
    letters = string.ascii_letters + string.digits
    return "".join(secrets.choice(letters) for _ in range(17)) + secrets.choice(string.digits) + "-aZ"
