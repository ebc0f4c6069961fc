"""Two-factor authentication: codes that change every 30 seconds (TOTP, RFC 6238), and recovery codes.

Owns the record with the secret of a user, and its rules. The secret is encrypted, because the server needs it again;
recovery codes are random enough (80 bits) to be kept as SHA-256. No code is accepted twice, also after a restart and
with a clock that was set back: the record notes used codes in the batch of the call that they permit.

Does not own the password, which is verified first, nor the throttle of wrong codes, which is that of logins.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Annotated, Final

import pyotp
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.kind import OTHER_OWNER, Doc, Kind
from trunkline.actors.core.values.errors import Invalid, Unauthorized
from trunkline.actors.core.values.structs import Body, Message, View
from trunkline.actors.people.accounts import single_use
from trunkline.limits.table import Limits
from trunkline.store.errors import CannotOpen
from trunkline.store.keyring import Keyring

_DRIFT_STEPS_MAX: Final = 1
"""Steps of 30 seconds by which the clocks of telephone and server may differ, to each side."""
USED_CODES_MAX: Final = 64
"""Used codes that are remembered; no code older than these is accepted."""
_RECOVERY_CODES_MAX: Final = 10
"""Recovery codes of a user: a list that fits on a card. Each replaces the second factor once."""
TWO_FACTOR: Final = Kind(
    name="twoFactor",
    noun="second factor",
    home="owner",
    indexes=(),
    counted_as=None,
    audited_as=None,
    not_portable=OTHER_OWNER,
)
"""One record for each user who has asked for a key: its id and its parent are the id of the user."""

KEY_BYTES: Final = 32
_ISSUER: Final = "Trunkline"
_STEP_S: Final = 30
_RECOVERY_CODE_BYTES: Final = 10
RECOVERY_BYTES: Final = _RECOVERY_CODES_MAX * _RECOVERY_CODE_BYTES
"""The random bytes of which the recovery codes of a user are made."""
_NAME_CHARS_MAX: Final = 255
_DIGITS: Final = re.compile(r"[0-9]{6}", re.ASCII)

_Password = Annotated[str, Meta(max_length=2048)]
Code = Annotated[str, Meta(max_length=2048)]


class TwoFactorEnabling(Body, frozen=True):
    """The proof that an app has the key: one of its codes. `twoFactorAuthKey` is the key that was generated last."""

    password: _Password
    two_factor_code: Code
    two_factor_auth_key: Annotated[str, Meta(min_length=52, max_length=52)] | UnsetType = UNSET


class TwoFactorDisabling(Body, frozen=True):
    """The credentials of the user. The code is one of the app, or a recovery code."""

    password: _Password
    two_factor_code: Code


class TwoFactorKey(View, frozen=True):
    """A new key for an app that makes codes, as text and as the URI that such apps read from a picture."""

    key: Annotated[str, Meta(max_length=1024)]
    key_uri: Annotated[str, Meta(max_length=1024)]


class GenerateTwoFactor(Message, frozen=True):
    """Make a new key; the answer is a `TwoFactorKey` as a document. It has no effect before it is enabled."""


class EnableTwoFactor(Message, frozen=True):
    """Require codes of the generated key from now on. The answer are the recovery codes."""

    body: TwoFactorEnabling


class DisableTwoFactor(Message, frozen=True):
    """Require no codes any more."""

    body: TwoFactorDisabling


class ResetTwoFactor(Message, frozen=True):
    """Require no codes any more, without credentials (only operators may)."""


class SecondFactor:
    """The rules for the record of a user. The methods change `doc`, which the caller stores if they do not raise."""

    def __init__(self, doc: Doc, user: bytes, keyring: Keyring, limits: Limits) -> None:
        self.doc = doc
        self._user = user
        self._keyring = keyring
        self._limits = limits

    def generate(self, random: bytes, email: str, now_ms: int) -> dict[str, str]:
        """Make `random` the key that waits to be enabled. Returns it as a `TwoFactorKey`."""
        key = base64.b32encode(random).decode().rstrip("=")
        self.doc |= {"newKey": self._seal(key, "newKey"), "newKeyTime": now_ms}
        uri = pyotp.TOTP(key).provisioning_uri(name=email[:_NAME_CHARS_MAX], issuer_name=_ISSUER)
        return {"key": key, "keyUri": uri}

    def enable(self, body: TwoFactorEnabling, random: bytes, now_ms: int) -> list[str]:
        """Make the generated key the current one. Returns new recovery codes, made of `random`.

        Raises `Invalid` if no key was generated a short time ago, `Unauthorized` for a wrong code.
        """
        key = self._unseal("newKey")
        age_ms = now_ms - self.doc.get("newKeyTime", 0)
        if key is None or age_ms >= self._limits.two_factor_key_s * 1000:
            raise Invalid("twoFactorAuthKey: there is none, or it is too old; generate a new one.")
        if body.two_factor_auth_key is not UNSET and not hmac.compare_digest(
            body.two_factor_auth_key.encode(), key.encode()
        ):
            raise Invalid("twoFactorAuthKey: is not the key that was generated last.")
        self.doc.clear()
        self.doc["key"] = self._seal(key, "key")
        self.check(body.two_factor_code, "twoFactorCode", now_ms)
        pieces = [
            random[start : start + _RECOVERY_CODE_BYTES]
            for start in range(0, len(random), _RECOVERY_CODE_BYTES)
        ]
        codes = [base64.b32encode(piece).decode().lower() for piece in pieces]
        self.doc["recoveryHashes"] = [_hash(code) for code in codes]
        return ["-".join(code[start : start + 4] for start in range(0, len(code), 4)) for code in codes]

    def check(self, code: str | UnsetType, field: str, now_ms: int) -> None:
        """Use a code of the app or a recovery code. Raises `Unauthorized` if it is missing, wrong or used."""
        if code is UNSET or not code:
            raise Unauthorized(f"{field}: is missing; this user logs in with a second factor.")
        plain = re.sub(r"[\s-]", "", code).lower()
        accepted = (
            self._use_code(plain, now_ms) if _DIGITS.fullmatch(plain) else self._use_recovery_code(plain)
        )
        if not accepted:
            raise Unauthorized(f"{field}: is wrong, or was used before.")

    def _use_code(self, code: str, now_ms: int) -> bool:
        key = self._unseal("key")
        if key is None:
            return False
        totp, drift = pyotp.TOTP(key), _DRIFT_STEPS_MAX
        step = now_ms // 1000 // _STEP_S
        # All are compared, so that the time does not tell which one it was.
        matching = [
            each
            for each in range(max(step - drift, 0), step + drift + 1)
            if hmac.compare_digest(totp.generate_otp(each), code)
        ]
        kept_max = USED_CODES_MAX
        used = [single_use.use(self.doc, "codes", each, str(each), kept_max) for each in matching]
        return bool(used) and all(used)

    def _use_recovery_code(self, code: str) -> bool:
        hashes: list[bytes] = self.doc.get("recoveryHashes", [])
        left = [each for each in hashes if not hmac.compare_digest(each, _hash(code))]
        self.doc["recoveryHashes"] = left
        return len(left) < len(hashes)

    def _seal(self, key: str, field: str) -> bytes:
        return self._keyring.seal(key, kind=TWO_FACTOR.name, id=self._user, field=field)

    def _unseal(self, field: str) -> str | None:
        """A sealed key; None if there is none, or if the operator has lost the encryption key."""
        sealed = self.doc.get(field)
        if sealed is None:
            return None
        try:
            key: str = self._keyring.unseal(sealed, kind=TWO_FACTOR.name, id=self._user, field=field)
        except CannotOpen:
            return None
        return key


def _hash(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).digest()
