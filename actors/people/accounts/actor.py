"""The user actor: the only writer of a user's record and of what belongs to the user.

A user's passwords are verified one at a time, so that guessing the password of one user cannot use every core.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.kinds import USER
from trunkline.actors.core.records.owner import RecordOwner, unique_key
from trunkline.actors.core.records.resource import Resources
from trunkline.actors.core.records.revision import check_match
from trunkline.actors.core.values.errors import Invalid, NotFound, Unauthorized
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Created, Message
from trunkline.actors.core.values.timestamps import check_cutoff, iso, parse_iso
from trunkline.actors.people.accounts import ended_logins, single_use
from trunkline.actors.people.accounts.ended_logins import ENDED_LOGINS, EndLogin
from trunkline.actors.people.accounts.messages import (
    ChangePassword,
    CreateUser,
    DeleteUser,
    Email,
    LogIn,
    MePatch,
    PatchMe,
    RequestVerification,
    Session,
    SetOperator,
    SetPassword,
    VerifyCredentials,
    VerifyEmail,
)
from trunkline.actors.people.accounts.passwords import hash_password, verify_password
from trunkline.actors.people.accounts.recent_items import RECENT_ITEMS, AddRecentItem, with_newest
from trunkline.actors.people.accounts.sso import (
    SSO_LOGINS,
    BeginSession,
    ConnectCodehost,
    DisconnectCodehost,
)
from trunkline.actors.people.accounts.two_factor import (
    KEY_BYTES,
    RECOVERY_BYTES,
    TWO_FACTOR,
    USED_CODES_MAX,
    DisableTwoFactor,
    EnableTwoFactor,
    GenerateTwoFactor,
    ResetTwoFactor,
    SecondFactor,
)
from trunkline.store import keys
from trunkline.store.codec import decode, encode
from trunkline.store.keyring import Keyring

_CREDENTIAL_FIELDS = ("email", "password", "token_cutoff")
_OWN_RECORDS = (RECENT_ITEMS, SSO_LOGINS, TWO_FACTOR, ENDED_LOGINS)
_SESSION_ID_BYTES = 12
"""The kinds of which each user has at most one record, with the id of the user."""


class User(RecordOwner):
    """One user. `ref.parent` is `ids.ROOT`."""

    kind: ClassVar[str] = "user"
    noun: ClassVar[str] = "user"
    creation_messages: ClassVar[frozenset[type[Message]]] = frozenset({CreateUser})
    own: ClassVar[Kind] = USER

    __slots__ = ()

    async def on_create_user(self, message: CreateUser) -> Created:
        """Create the user; the answer is the id. Raises `Invalid` for an address that is wrong or taken."""
        password_hash = await hash_password(message.password)
        self._claim_email(message.email)
        return self.create(
            {
                "passwordLastUpdated": self.system.clock.wall_ms(),
                "email": message.email,
                "firstName": message.first_name,
                "passwordHash": password_hash,
                "tokenCutoff": 0,
                "tokenGeneration": 0,
            }
        )

    async def on_log_in(self, message: LogIn) -> Session | None:
        """Begin a session; None if the password is wrong. Raises `Unauthorized` for a wrong code."""
        if not await verify_password(self.doc["passwordHash"], message.password):
            return None
        self._use_second_factor(message.two_factor_code, "twoFactorCode")
        return self._new_session()

    def on_end_login(self, message: EndLogin) -> None:
        """End one login, with the tokens that were renewed from its first one."""
        with self._own_record(ENDED_LOGINS) as doc:
            ended_logins.end(doc, message, self.system.clock.wall_ms(), self.system.limits.ended_logins_max)
        self.writes().completes = "revocation"
        self.after_commit(partial(self.system.revocations.revoke, self.ref.id))

    async def on_verify_credentials(self, message: VerifyCredentials) -> None:
        """Verify the password and the code. Raises `Unauthorized`."""
        await self._verify(message.password, message.two_factor_code)

    async def on_patch_me(self, message: PatchMe) -> None:
        """Change the user. Changes of e-mail address, password and token cutoff need the current password."""
        check_match(message.if_match, self.raw)
        body = message.body
        changes: Doc = msgspec.to_builtins(body)
        changes.pop("currentCredentials", None)
        changes.pop("password", None)
        if isinstance(body.token_cutoff, str):
            changes["tokenCutoff"] = self._cutoff(body.token_cutoff)
        if any(getattr(body, field) is not msgspec.UNSET for field in _CREDENTIAL_FIELDS):
            await self._check_credentials(body)
        if isinstance(body.password, str):
            changes |= await self._new_password(body.password)
        if "email" in changes:
            self._claim_email(changes["email"])
            if changes["email"] != self.doc["email"]:
                changes["emailVerified"] = None
        self.change(changes)

    async def on_change_password(self, message: ChangePassword) -> Session:
        """Change the password, and end all earlier tokens if that is wanted. The answer is a new session."""
        body = message.body
        await self._verify(body.password, body.two_factor_code)
        changes = await self._new_password(body.new_password)
        if not body.invalidate_existing_tokens:
            del changes["tokenCutoff"], changes["tokenGeneration"]
        self.change(changes)
        return self._new_session()

    async def on_set_password(self, message: SetPassword) -> None:
        """Set the password and end all tokens that were made before."""
        self.change(await self._new_password(message.password))

    # The second factor.

    def on_generate_two_factor(self, _message: GenerateTwoFactor) -> dict[str, str]:
        """Make a key, which has no effect before it is enabled. The answer is a `TwoFactorKey`."""
        if self.doc.get("twoFactorAuthEnabled"):
            raise Invalid(
                "Two-factor authentication is enabled already; disable it first to get another key."
            )
        key, now_ms = self.system.random_bytes(KEY_BYTES), self.system.clock.wall_ms()
        with self._own_record(TWO_FACTOR) as doc:
            return self._second_factor(doc).generate(key, self.doc["email"], now_ms)

    async def on_enable_two_factor(self, message: EnableTwoFactor) -> list[str]:
        """Require codes of the generated key from now on. The answer are the recovery codes."""
        body, system = message.body, self.system
        if self.doc.get("twoFactorAuthEnabled"):
            raise Invalid("Two-factor authentication is enabled already.")
        await self._verify(body.password, UNSET)
        random = system.random_bytes(RECOVERY_BYTES)
        with self._own_record(TWO_FACTOR) as doc:
            codes = self._second_factor(doc).enable(body, random, system.clock.wall_ms())
        self.change({"twoFactorAuthEnabled": True})
        return codes

    async def on_disable_two_factor(self, message: DisableTwoFactor) -> None:
        """Require no codes any more."""
        if not self.doc.get("twoFactorAuthEnabled"):
            raise Invalid("Two-factor authentication is not enabled.")
        await self._verify(message.body.password, message.body.two_factor_code)
        self.on_reset_two_factor(ResetTwoFactor())

    def on_reset_two_factor(self, _message: ResetTwoFactor) -> None:
        """Require no codes any more, and forget the key."""
        with self._own_record(TWO_FACTOR) as doc:
            doc.clear()
        self.change({"twoFactorAuthEnabled": None})

    # Logging in at another place.

    def on_begin_session(self, message: BeginSession) -> Session:
        """Begin a session for a user whom a provider knows. Raises `Unauthorized`."""
        self._check_known(message.emails)
        if message.provider == "codehost":
            if self.doc.get("codehostConnected") is False:
                raise Unauthorized(
                    "The user has disconnected the code host; log in with the password and connect it again."
                )
            if self.doc.get("twoFactorAuthEnabled"):
                raise Unauthorized("The user has a second factor; log in with the password and a code.")
            if "codehostConnected" not in self.doc:
                self.change({"codehostConnected": True})
        if message.assertion is not None:
            self._use_assertion(*message.assertion)
        return self._new_session()

    def on_connect_codehost(self, message: ConnectCodehost) -> None:
        """Permit logins by the code host. Raises `Unauthorized` if it knows the user by another address."""
        self._check_known(message.emails)
        self.change({"codehostConnected": True})

    def on_disconnect_codehost(self, _message: DisconnectCodehost) -> None:
        """Refuse logins by the code host from now on."""
        self.change({"codehostConnected": False})

    def _check_known(self, emails: tuple[str, ...]) -> None:
        own = self.doc["email"]
        if not any(is_same_address(own, email) for email in emails):
            raise Unauthorized("The e-mail address is not that of the user.")
        if "emailVerified" not in self.doc:
            # Otherwise somebody could take an address first, and wait for whom it belongs to.
            raise Unauthorized(
                "The user's e-mail address is not verified; log in with the password and verify it."
            )

    def _use_assertion(self, expires_ms: int, id: str) -> None:
        # An id may be long, and its identity provider chooses it.
        hashed = hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()
        with self._own_record(SSO_LOGINS) as doc:
            if not single_use.use(doc, "assertions", expires_ms, hashed, USED_CODES_MAX):
                raise Unauthorized("SAMLResponse: was used before; begin again.")

    # The e-mail address.

    def on_request_verification(self, _message: RequestVerification) -> str | None:
        """The address to which a mail is to be sent; None if it is verified already."""
        return None if self.doc.get("emailVerified") else str(self.doc["email"])

    def on_verify_email(self, message: VerifyEmail) -> None:
        """Note that the address is verified. Raises `NotFound` if the user has another one by now."""
        if message.email != self.doc["email"]:
            raise NotFound("The user has another e-mail address by now; ask for a new link.")
        self.change({"emailVerified": True})

    def on_set_operator(self, message: SetOperator) -> None:
        """Make the user an operator, or end that."""
        self.change({"isOperator": message.is_operator or None})

    def on_add_recent_item(self, message: AddRecentItem) -> None:
        """Make an item the newest of the recent items."""
        newest = [message.item_type, message.parent_id, message.item_id]
        with self._own_record(RECENT_ITEMS) as doc:
            doc["items"] = with_newest(doc.get("items", []), newest, self.system.limits)

    def on_delete_user(self, _message: DeleteUser) -> None:
        """Delete the record and what belongs to it. Applications are the caller's concern."""
        journal, id = self.system.journal, self.ref.id
        users = journal.get(keys.COUNTS, keys.total_key(USER.name, ROOT))
        if users is None or decode(users)["n"] <= 1:
            raise Invalid(f"{self.doc['email']} is the only user; add another one first.")
        resources = self.system.component(Resources).values()
        for kind in {*(each.kind for each in resources if each.parent == "user"), *_OWN_RECORDS}:
            prefix = keys.record_prefix(kind.name, id)
            for key, raw in journal.range(keys.RECORDS, prefix, _end(prefix)):
                record = key[-keys.ID_BYTES :]
                records.erase(self, kind, id, record, decode(raw))
                for db, owned in kind.owned_keys(id, record):
                    for each, _ in journal.range(db, owned, _end(owned)):
                        self.delete(db, each)
            self.delete(keys.COUNTS, keys.total_key(kind.name, id))
        records.erase(self, USER, ROOT, id, self.doc)
        # The sweeper removes what other actors keep for the user: jobs.
        self.put(keys.META, keys.purge_key(id), encode({"userId": id.hex()}))
        self.claim("email", None, "", fold=True)
        self.exists = False

    def _new_session(self) -> Session:
        # Never before the cutoff, so that a clock that was set back does not lock the user out.
        ended_until_ms = ended_logins.ended_until(self._read_own(ENDED_LOGINS) or {})
        since_ms = max(self.system.clock.wall_ms(), self.doc["tokenCutoff"], ended_until_ms + 1)
        id = self.system.random_bytes(_SESSION_ID_BYTES).hex()
        return Session(token_generation(self.doc), since_ms, id)

    async def _new_password(self, password: str) -> Doc:
        """The fields that change with the password. The new generation ends earlier tokens, regardless of clocks."""
        password_hash = await hash_password(password)
        now_ms = self.system.clock.wall_ms()
        return {
            "passwordHash": password_hash,
            "passwordLastUpdated": now_ms,
            "tokenCutoff": now_ms,
            "tokenGeneration": token_generation(self.doc) + 1,
        }

    def _cutoff(self, text: str) -> int:
        """Parse the cutoff. It must not be in the future, nor move back, or ended tokens would become valid again."""
        cutoff_ms = parse_iso(text, field="tokenCutoff")
        check_cutoff(cutoff_ms, self.system.clock.wall_ms(), field="tokenCutoff")
        if cutoff_ms < self.doc["tokenCutoff"]:
            raise Invalid(
                f"tokenCutoff: {iso(cutoff_ms)} lies before the current one, {iso(self.doc['tokenCutoff'])}; "
                "ended tokens must not become valid again."
            )
        return cutoff_ms

    async def _check_credentials(self, body: MePatch) -> None:
        if body.current_credentials is msgspec.UNSET:
            raise Invalid(
                "currentCredentials: is missing; e-mail address, password and tokenCutoff change only "
                "with the current password."
            )
        given = body.current_credentials
        await self._verify(given.password, given.two_factor_code, at="currentCredentials.")

    async def _verify(self, password: str, code: str | UnsetType, *, at: str = "") -> None:
        """Verify the credentials, and use the code up. `at` is where they are in the body. Raises `Unauthorized`."""
        if not await verify_password(self.doc["passwordHash"], password):
            raise Unauthorized(f"{at}password: is not the current password.")
        self._use_second_factor(code, f"{at}twoFactorCode")

    def _use_second_factor(self, code: str | UnsetType, field: str) -> None:
        """Use a code, if the user has two-factor authentication; it is never accepted again. Raises `Unauthorized`."""
        if self.doc.get("twoFactorAuthEnabled"):
            with self._own_record(TWO_FACTOR) as doc:
                self._second_factor(doc).check(code, field, self.system.clock.wall_ms())

    def _second_factor(self, doc: Doc) -> SecondFactor:
        return SecondFactor(doc, self.ref.id, self.system.component(Keyring), self.system.limits)

    @contextmanager
    def _own_record(self, kind: Kind) -> Iterator[Doc]:
        """The user's only record of a kind. What the body changes in it is stored with this turn, unless it raises."""
        old, doc = self._read_own(kind), self._read_own(kind) or {}
        yield doc
        records.write(self, kind, self.ref.id, self.ref.id, old, doc)

    def _read_own(self, kind: Kind) -> Doc | None:
        id = self.ref.id
        return records.doc_of(self.system.journal, kind, id, id)

    def _claim_email(self, email: str) -> None:
        """Claim an e-mail address, which only one user can have. Case is ignored. Raises `Invalid`."""
        try:
            msgspec.convert(email, Email)
        except msgspec.ValidationError:
            raise Invalid(
                f"email: {email[:100]!r} is not an e-mail address such as name@example.com: one @, and no spaces, "
                "line breaks or control characters."
            ) from None
        taken = f"email: {email} belongs to another user; use another address."
        self.claim("email", email, taken, fold=True)


def email_key(email: str) -> bytes:
    """The key at which the id of the user with this e-mail address is stored."""
    return unique_key(USER, "email", email, fold=True)


def is_same_address(one: str, other: str) -> bool:
    """Whether two e-mail addresses are equal but for the case of the letters A to Z.

    Users are found without regard to case in all of Unicode, where different addresses may become equal.
    """
    return one.encode("utf-8", "surrogatepass").lower() == other.encode("utf-8", "surrogatepass").lower()


def token_generation(doc: Doc) -> int:
    """The number of password changes of the user; tokens of an earlier generation are invalid."""
    return int(doc.get("tokenGeneration", 0))


def _end(prefix: bytes) -> bytes:
    """The end of the keys with this prefix, which begins with a name."""
    end = keys.prefix_end(prefix)
    assert end is not None
    return end
