"""The account actor: the only writer of a user's record and of the user's API tokens.

Owns passwords. They are hashed with Argon2id in a worker thread, so a log-in costs the loop nothing, and
the account itself handles one at a time, so that guessing at one account can not use every core.
"""

from __future__ import annotations

from typing import Any, ClassVar

import argon2
import msgspec
import trio

from trunkline.actors.accounts.messages import CreateUser, LogIn, MePatch, PatchMe, Session, SetPassword
from trunkline.actors.applications.actor import RecordOwner
from trunkline.actors.records import records
from trunkline.actors.records.kinds import USER
from trunkline.actors.runtime.actor import Ref
from trunkline.actors.values.errors import Invalid, Unauthorized
from trunkline.actors.values.ids import ROOT
from trunkline.actors.values.structs import Message
from trunkline.actors.values.timestamps import iso, parse_iso
from trunkline.store import keys
from trunkline.store.codec import decode

_hasher = argon2.PasswordHasher()
_threads: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("argon2_threads")

_GUARDED = ("email", "password", "token_cutoff")
_NEW_PASSWORD = 12


class Account(RecordOwner):
    """One user. `ref.parent` is `ids.ROOT`."""

    kind: ClassVar[str] = "user"
    noun: ClassVar[str] = "user"
    births: ClassVar[frozenset[type[Message]]] = frozenset({CreateUser})

    __slots__ = ("doc", "raw")

    def __init__(self, system: Any, ref: Ref) -> None:
        self.doc: records.Doc = {}
        self.raw = b""
        super().__init__(system, ref)

    def load(self) -> bool:
        raw = self.system.journal.get(keys.RECORDS, keys.record_key(USER.name, ROOT, self.ref.id))
        if raw is None:
            return False
        self.raw, self.doc = raw, decode(raw)
        return True

    async def on_create_user(self, message: CreateUser) -> bytes:
        """Create the account; the answer is its id. Raises `Invalid` where the e-mail address is taken."""
        password_hash = await _hash(message.password)
        now_ms = self.system.clock.wall_ms()
        doc: records.Doc = {
            "creationDate": now_ms,
            "lastUpdated": now_ms,
            "passwordLastUpdated": now_ms,
            "email": message.email,
            "firstName": message.first_name,
            "passwordHash": password_hash,
            "tokenCutoff": 0,
            "tokenGeneration": 0,
        }
        self._claim_email(message.email)
        self.raw = records.write(self, USER, ROOT, self.ref.id, None, doc)
        self.doc = doc
        self.exists = True
        return self.ref.id

    async def on_log_in(self, message: LogIn) -> Session | None:
        """The session that begins; None where the password is wrong."""
        if not await _verify(self.doc["passwordHash"], message.password):
            return None
        # Never before the cutoff, so that a clock that was set back locks nobody out.
        since_ms = max(self.system.clock.wall_ms(), self.doc["tokenCutoff"])
        return Session(token_generation(self.doc), since_ms)

    async def on_patch_me(self, message: PatchMe) -> None:
        """Change the account. What guards it needs the present password as well."""
        records.check_match(message.if_match, self.raw)
        body = message.body
        changes: records.Doc = msgspec.to_builtins(body)
        changes.pop("currentCredentials", None)
        changes.pop("password", None)
        if isinstance(body.token_cutoff, str):
            changes["tokenCutoff"] = self._cutoff(body.token_cutoff)
        if any(getattr(body, field) is not msgspec.UNSET for field in _GUARDED):
            await self._check_credentials(body)
        if isinstance(body.password, str):
            changes |= await self._new_password(body.password)
        if "email" in changes:
            self._claim_email(changes["email"])
        self._store(changes)

    async def on_set_password(self, message: SetPassword) -> None:
        """Set the password and end all tokens that were made before."""
        self._store(await self._new_password(message.password))

    async def _new_password(self, password: str) -> records.Doc:
        """What changes with the password. A new generation ends all tokens of the old one, whatever the clocks say."""
        password_hash = await _hash(password)
        now_ms = self.system.clock.wall_ms()
        return {
            "passwordHash": password_hash,
            "passwordLastUpdated": now_ms,
            "tokenCutoff": now_ms,
            "tokenGeneration": token_generation(self.doc) + 1,
        }

    def _cutoff(self, text: str) -> int:
        """A moment up to now; it never moves back, or tokens that had ended would hold again."""
        cutoff_ms = parse_iso(text, field="tokenCutoff")
        now_ms = self.system.clock.wall_ms()
        if cutoff_ms > now_ms:
            raise Invalid(
                f"tokenCutoff: {iso(cutoff_ms)} lies ahead of the server's {iso(now_ms)}; "
                "nobody could log in until then."
            )
        if cutoff_ms < self.doc["tokenCutoff"]:
            raise Invalid(
                f"tokenCutoff: {iso(cutoff_ms)} lies before the present one, {iso(self.doc['tokenCutoff'])}; "
                "tokens that have ended do not come back."
            )
        return cutoff_ms

    async def _check_credentials(self, body: MePatch) -> None:
        if body.current_credentials is msgspec.UNSET:
            raise Invalid(
                "currentCredentials: is missing; e-mail address, password and tokenCutoff change only "
                "with the present password."
            )
        if not await _verify(self.doc["passwordHash"], body.current_credentials.password):
            raise Unauthorized("currentCredentials.password: is not the present password.")

    def _store(self, changes: records.Doc) -> None:
        now_ms = max(self.system.clock.wall_ms(), self.doc["lastUpdated"] + 1)
        doc = {**self.doc, **changes, "lastUpdated": now_ms}
        self.raw = records.write(self, USER, ROOT, self.ref.id, self.doc, doc)
        self.doc = doc
        self.after_commit(self.system.authority_changed)

    def _claim_email(self, email: str) -> None:
        """An e-mail address belongs to one account; upper and lower case are the same address."""
        old = self.doc.get("email")
        if old is not None and old.casefold() == email.casefold():
            return
        key = email_key(email)
        if self.system.journal.get(keys.UNIQUE, key) is not None:
            raise Invalid(f"email: {email} belongs to another account; use another address.")
        self.put(keys.UNIQUE, key, self.ref.id)
        if old is not None:
            self.delete(keys.UNIQUE, email_key(old))


def email_key(email: str) -> bytes:
    """Where the id of the account with this e-mail address lies."""
    return keys.unique_key(USER.name, ROOT, "email", email.casefold())


def token_generation(doc: records.Doc) -> int:
    """Counts the passwords of the account; a token of an earlier one does not hold."""
    return int(doc.get("tokenGeneration", 0))


def check_new_password(password: str) -> None:
    """Raise `Invalid` where `password` is too weak to be set."""
    kinds = (str.islower, str.isupper, str.isdigit, lambda sign: not sign.isalnum())
    strong = all(any(kind(sign) for sign in password) for kind in kinds)
    if len(password) < _NEW_PASSWORD or len(password) > 2048 or not strong:
        raise Invalid(
            "password: needs 12 characters or more, with a lower-case and an upper-case letter, a digit and a sign."
        )


async def burn() -> None:
    """Spend the time of one check, so that an unknown address answers no sooner than a wrong password."""
    await _verify(_hash_of_nobody(), "nobody")


def _hash_of_nobody() -> str:
    """A hash that no password fits and that costs as much to check as any other."""
    unpadded = ("A" * 22, "A" * 43)  # 16 bytes of salt and 32 of digest in base64
    cost = f"m={_hasher.memory_cost},t={_hasher.time_cost},p={_hasher.parallelism}"
    return f"$argon2id$v=19${cost}${'$'.join(unpadded)}"


async def _hash(password: str) -> str:
    return await trio.to_thread.run_sync(_hasher.hash, password, limiter=_limiter())


async def _verify(password_hash: str, password: str) -> bool:
    def check() -> bool:
        try:
            return _hasher.verify(password_hash, password)
        except argon2.exceptions.VerifyMismatchError:
            return False

    return await trio.to_thread.run_sync(check, limiter=_limiter())


def _limiter() -> trio.CapacityLimiter:
    """At most two hashes at once: each holds a core for 50 ms and 64 MiB of memory."""
    try:
        return _threads.get()
    except LookupError:
        limiter = trio.CapacityLimiter(2)
        _threads.set(limiter)
        return limiter
