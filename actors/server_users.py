"""The users of the server: the first one, what the command line does with them, and the deletion of an account.

Does not own the record of a user, which is that of its actor (`actors/people/accounts/`): an account is deleted with
all that the user owns, in all wings.
"""

from __future__ import annotations

import secrets
import string
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from trunkline.actors.access.authority import find_user
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.records.listing import ids_of_facet
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, Invalid, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Created, Message
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.people.accounts.messages import (
    CreateUser,
    DeleteUser,
    SetOperator,
    SetPassword,
    VerifyEmail,
)
from trunkline.actors.people.accounts.passwords import check_new_password
from trunkline.actors.people.accounts.two_factor import ResetTwoFactor
from trunkline.actors.people.organizations.membership import MEMBER, check_other_admin, memberships
from trunkline.actors.people.organizations.messages import RemoveMember
from trunkline.actors.platform.applications.messages import DeleteApplication
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.limits.settings import Settings


class FirstUser(NamedTuple):
    """The user that was created at the first start. `password` is None if the operator chose it."""

    email: str
    password: str | None


class UserLine(NamedTuple):
    """A user in the list of the command line."""

    id: str
    email: str
    created: str


async def ensure_first_user(system: System, settings: Settings) -> FirstUser | None:
    """Create the first user of a new data directory; None if there is a user already.

    E-mail address and password come from the settings. Without a password there, one is generated, which the
    caller shows once. Its text is not stored.
    """
    if _has_users(system):
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
    is_first = not _has_users(system)
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
    owned = system.store.look(
        lambda snapshot: records.total(snapshot, APPLICATION, ROOT, user.hex()), wide=True
    )
    with system.store.snapshot() as snapshot:
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
    owned = system.store.look(
        lambda snapshot: list(ids_of_facet(snapshot, APPLICATION, ROOT, user.hex())), wide=True
    )
    for application in owned:
        with suppress(NotFound):  # deleted in the meantime
            await system.ask(Ref("application", ROOT, application), DeleteApplication())
    return len(owned)


def users(system: System) -> list[UserLine]:
    """Return all users, oldest first."""
    with system.store.snapshot() as snapshot:
        return [
            UserLine(id.hex(), doc["email"], iso(doc["creationDate"]))
            for id, doc in records.scan(snapshot, USER, ROOT)
        ]


def _has_users(system: System) -> bool:
    """Whether there is any. No record is read: a damaged one must not keep the server from starting."""
    prefix = keys.record_prefix(USER.name, ROOT)
    with system.store.snapshot() as snapshot:
        return next(snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)), None) is not None


def _new_password() -> str:
    """Return 21 random characters, with one of each class that a password needs."""
    letters = string.ascii_letters + string.digits
    return "".join(secrets.choice(letters) for _ in range(17)) + secrets.choice(string.digits) + "-aZ"
