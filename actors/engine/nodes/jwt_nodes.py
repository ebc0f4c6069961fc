"""JWTCreateNode, JWTDecodeNode and JWTVerifyNode: JSON web tokens are signed, read and verified.

A secret text signs with HS256, HS384 or HS512. A private key as PEM signs with the other algorithms, and a public key
or a certificate as PEM verifies them: a key never verifies what a text signed, nor the other way. Times are compared
with the time of the run. `iat` is added; `iat`, `exp` and `iss` of the data take precedence. `expiresIn` is in seconds;
if it is not set, the token does not expire.

Create puts `{"error": {"type": ..., "message": ...}}` at `destinationPath` if the token cannot be made. Decode does not
verify, and puts null there for a text that is no token; `complete` adds header and signature. Verify has output 1 for a
valid token, and output 0 for others, with `{"type": ..., "message": ...}` at `errorPath`; with `algorithmTemplate` only
tokens that were signed with this algorithm are valid. `Bearer ` before a token is ignored.

A credential of the type jwt (`credentialNameTemplate`) has the secret or the private key, the one algorithm, and an
issuer, which `issuerTemplate` replaces; `algorithmTemplate` has no effect then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate
from jwt.algorithms import HMACAlgorithm
from jwt.api_jws import PyJWS
from jwt.exceptions import PyJWTError

from trunkline.actors.core.formulas.byte_texts import TO_TEXT
from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.json_text import json_text
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.runtime.computing import in_thread
from trunkline.actors.engine.copies import size_of
from trunkline.actors.engine.credentials import credential_of
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.node_rights import may_read
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import (
    ChoiceSetting,
    Config,
    FlagSetting,
    LongMixedSetting,
    NumberSetting,
    PathSetting,
    TemplateSetting,
)
from trunkline.actors.engine.tools import (
    choice_of,
    is_on,
    needed_path,
    needed_template,
    needed_text_reader,
    number_reader,
    path_of,
    template_of,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit

_DATA_TYPE: Final = ChoiceSetting("dataTemplateType", "json", "path")
_DATA: Final = LongMixedSetting("dataTemplate", is_needed=True)
_HEADER_TYPE: Final = ChoiceSetting("headerTemplateType", "json", "path")
_HEADER: Final = LongMixedSetting("headerTemplate")
_SECRET: Final = TemplateSetting("secretTemplate")
_ALGORITHM: Final = TemplateSetting("algorithmTemplate")
_ISSUER: Final = TemplateSetting("issuerTemplate")
_CREDENTIAL_NAME: Final = TemplateSetting("credentialNameTemplate")
_EXPIRES_IN: Final = NumberSetting("expiresIn")
_DESTINATION_PATH: Final = PathSetting("destinationPath", is_needed=True)
_TOKEN: Final = TemplateSetting("tokenTemplate", is_needed=True)
_COMPLETE: Final = FlagSetting("complete")
_ERROR_PATH: Final = PathSetting("errorPath")

TOKEN_CHARS_MAX: Final = 65_536
SECRET_CHARS_MAX: Final = 16_384

_Now = int
"""Seconds since 1970."""
_SECRET_ALGORITHMS: Final = ("HS256", "HS384", "HS512")
_KEY_ALGORITHMS: Final = (
    *(f"{family}{bits}" for family in ("RS", "PS") for bits in (256, 384, 512)),
    *("ES256", "ES384", "ES512", "ES256K", "EdDSA"),
)
_KEY_ERRORS: Final = (PyJWTError, ValueError, TypeError, UnsupportedAlgorithm)
_PEM: Final = "-----BEGIN "
_PRIVATE: Final = "PRIVATE KEY-----"
_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"


class _Signer(NamedTuple):
    """What signs and verifies. `algorithm` is "" if it is not given."""

    key: str
    algorithm: str
    issuer: str
    allowed: tuple[str, ...]


class _Invalid(Exception):
    """Why a token cannot be made, or is not valid."""

    def __init__(self, message: str, type: str = "JsonWebTokenError") -> None:
        super().__init__(message)
        self.shown = {"type": type, "message": message}


class _AnySecret(HMACAlgorithm):
    """HMAC with secrets of any length: the author of a workflow chooses them."""

    def check_key_length(self, key: bytes) -> str | None:  # noqa: ARG002 - the base class has it
        return None


def _signer() -> PyJWS:
    signer = PyJWS(_KEY_ALGORITHMS, {"enforce_minimum_key_length": True})
    for name, hash_of in zip(
        _SECRET_ALGORITHMS, (HMACAlgorithm.SHA256, HMACAlgorithm.SHA384, HMACAlgorithm.SHA512), strict=True
    ):
        signer.register_algorithm(name, _AnySecret(hash_of))
    return signer


_SIGNER: Final = _signer()


def _create(config: Config) -> NodeStep:
    destination = needed_path(config, _DESTINATION_PATH)
    signer, expires_in = _signer_reader(config), number_reader(config, _EXPIRES_IN)
    data, header = _object(config, _DATA, _DATA_TYPE), _object(config, _HEADER, _HEADER_TYPE)

    def step(visit: Visit) -> Any:
        now = visit.run.now_ms // 1000
        try:
            headers, by = header(visit) or {}, signer(visit)
            name = headers.get("alg") or by.algorithm or "HS256"
            seconds = None if expires_in is None else expires_in(visit)
            claims = _claims(data(visit) or {}, now, seconds, by.issuer)
        except _Invalid as error:
            visit.put(destination, {"error": error.shown})
            return 0

        def token() -> Any:
            try:
                return _sign(claims, by, name, headers)
            except _Invalid as error:
                return {"error": error.shown}

        def answered(made: Any) -> int:
            visit.put(destination, made)
            return 0

        return _answered(by.key, token, answered)

    return step


def _claims(data: dict[str, Any], now: _Now, expires_in: float | None, issuer: str) -> dict[str, Any]:
    claims = {"iat": now, **data}
    if expires_in is not None and "exp" not in claims:
        issued = claims["iat"]
        if not _is_number(issued) or not math.isfinite(expires_in):
            raise _Invalid("The time of expiry cannot be told: iat and config.expiresIn must be numbers.")
        claims["exp"] = math.floor(issued + expires_in)
    if issuer and "iss" not in claims:
        claims["iss"] = issuer
    return claims


def _sign(claims: dict[str, Any], by: _Signer, algorithm: Any, headers: dict[str, Any]) -> str:
    """Sign. Raises `_Invalid`."""
    allowed = by.allowed
    if algorithm not in allowed:
        raise _Invalid(
            f"The algorithm is {algorithm!r:.100}; for this secret give one of {', '.join(allowed)}."
        )
    if size_of([claims, headers], TOKEN_CHARS_MAX) > TOKEN_CHARS_MAX:
        raise _Invalid(f"The token would have more than {TOKEN_CHARS_MAX} characters.")
    if "b64" in headers or "crit" in headers:
        raise _Invalid("The header must not have b64 or crit.")
    try:
        token = _SIGNER.encode(
            str(json_text(claims)).encode(), by.key, algorithm, headers, sort_headers=False
        )
    except (*_KEY_ERRORS, EvaluationError, RecursionError) as error:
        raise _Invalid(f"The token cannot be signed: {error}") from None
    if len(token) > TOKEN_CHARS_MAX:
        raise _Invalid(f"The token has {len(token)} characters; {TOKEN_CHARS_MAX} are accepted.")
    return token


def _decode(config: Config) -> NodeStep:
    destination, token = needed_path(config, _DESTINATION_PATH), _token(config)
    is_complete = is_on(config, _COMPLETE)

    def step(visit: Visit) -> int:
        try:
            read = _read(token(visit), options={"verify_signature": False})
        except _Invalid:
            visit.put(destination, None)
            return 0
        if is_complete:
            visit.put(destination, {**read, "signature": TO_TEXT["base64url"](read["signature"])})
        else:
            visit.put(destination, read["payload"])
        return 0

    return step


def _verify(config: Config) -> NodeStep:
    signer, token, problem = _signer_reader(config), _token(config), path_of(config, _ERROR_PATH)
    has_issuer, has_algorithm = bool(text_of(config, _ISSUER)), bool(text_of(config, _ALGORITHM))

    def step(visit: Visit) -> Any:
        def answered(shown: Any) -> int:
            if shown is None:
                return 1
            visit.put(problem, shown)
            return 0

        now = visit.run.now_ms // 1000
        try:
            by, text = signer(visit), token(visit)
            if has_issuer and not by.issuer:
                raise _Invalid("config.issuerTemplate: gives nothing, so no issuer is the right one.")
            if has_algorithm:
                by = _limited(by)
        except _Invalid as error:
            return answered(error.shown)

        def check() -> Any:
            try:
                _check(text, by, now)
            except _Invalid as error:
                return error.shown
            return None

        return _answered(by.key, check, answered)

    return step


def _limited(by: _Signer) -> _Signer:
    """Only the one algorithm. Raises `_Invalid` for one that the secret does not have."""
    if by.algorithm not in by.allowed:
        raise _Invalid(
            f"config.algorithmTemplate: gives {by.algorithm!r:.100}; for this secret give one of "
            f"{', '.join(by.allowed)}."
        )
    return by._replace(allowed=(by.algorithm,))


def _check(token: str, by: _Signer, now: _Now) -> None:
    """Verify a token. Raises `_Invalid` if it is not valid."""
    public: Any = by.key
    try:
        if _CERTIFICATE in public:
            public = load_pem_x509_certificate(public.encode()).public_key()
        elif _PRIVATE in public:
            public = load_pem_private_key(public.encode(), None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise _Invalid("The certificate or the key cannot be read.") from None
    claims = _read(token, key=public, algorithms=list(by.allowed))["payload"]
    if not isinstance(claims, dict):
        claims = {}
    for name in ("exp", "nbf"):
        if name in claims and not _is_number(claims[name]):
            raise _Invalid(f"{name} of the token is not a number.")
    if claims.get("nbf", now) > now:
        raise _Invalid("The token is not valid yet.", "NotBeforeError")
    if claims.get("exp", now + 1) <= now:
        raise _Invalid("The token has expired.", "TokenExpiredError")
    if by.issuer and claims.get("iss") != by.issuer:
        raise _Invalid(f"The issuer of the token is not {by.issuer:.100}.")


def _read(token: str, **how: Any) -> dict[str, Any]:
    """Header, payload and signature of a token. Raises `_Invalid`."""
    if len(token) > TOKEN_CHARS_MAX:
        raise _Invalid(f"The token has {len(token)} characters; {TOKEN_CHARS_MAX} are accepted.")
    try:
        read = _SIGNER.decode_complete(token, **how)
    except (*_KEY_ERRORS, RecursionError) as error:
        raise _Invalid(f"The token is not valid: {error}.") from None
    try:
        read["payload"] = msgspec.json.decode(read["payload"])
    except (msgspec.DecodeError, RecursionError):
        read["payload"] = read["payload"].decode("utf-8", "replace")
    return read


def _answered(key: str, work: Callable[[], Any], answer: Callable[[Any], int]) -> Any:
    """Do the work and answer with its result: with keys in a thread, as they take milliseconds."""
    if _PEM not in key:
        return answer(work())

    async def in_its_thread() -> int:
        return answer(await in_thread(work))

    return in_its_thread()


def _algorithms_of(key: str) -> tuple[str, ...]:
    return _KEY_ALGORITHMS if _PEM in key else _SECRET_ALGORITHMS


def _signer_reader(config: Config) -> Callable[[Visit], _Signer]:
    """Reads the secret or the key, with the algorithm and the issuer."""
    issuer = text_reader(config, _ISSUER)
    if text_of(config, _CREDENTIAL_NAME):
        name = text_reader(config, _CREDENTIAL_NAME)

        def of_credential(visit: Visit) -> _Signer:
            found = credential_of(visit.world, name(visit), "jwt")
            algorithm = found["algorithm"]
            if algorithm not in _algorithms_of(found["secret"]):
                raise _Invalid(f"The secret of the credential cannot sign with its algorithm, {algorithm}.")
            by = issuer(visit) or found.get("issuer") or ""
            return _Signer(found["secret"], algorithm, by, (algorithm,))

        return of_credential
    secret, algorithm = needed_text_reader(config, _SECRET), text_reader(config, _ALGORITHM)

    def read(visit: Visit) -> _Signer:
        key = secret(visit)
        if not key:
            raise _Invalid("config.secretTemplate: gives nothing, so nothing can be signed or verified.")
        if len(key) > SECRET_CHARS_MAX:
            raise _Invalid(f"config.secretTemplate: a secret has at most {SECRET_CHARS_MAX} characters.")
        return _Signer(key, algorithm(visit).strip(), issuer(visit), _algorithms_of(key))

    return read


def _token(config: Config) -> Callable[[Visit], str]:
    read = needed_text_reader(config, _TOKEN)
    return lambda visit: read(visit).strip().removeprefix("Bearer ").strip()


def _object(
    config: Config, setting: LongMixedSetting, type: ChoiceSetting
) -> Callable[[Visit], dict[str, Any] | None]:
    """Reads an object from a template of JSON or from a path; None if the field is not set."""
    if choice_of(config, type) == "path":
        path = needed_path(config, setting) if setting.is_needed else path_of(config, setting)
        get = None if path is None else lambda visit: path.get(visit.payload)
    else:
        template = needed_template(config, setting) if setting.is_needed else template_of(config, setting)
        get = None if template is None else lambda visit: template.json(visit.payload, visit.run.now_ms)

    def read(visit: Visit) -> dict[str, Any] | None:
        if get is None:
            return None
        try:
            value = get(visit)
        except EvaluationError as error:
            raise NodeError("InvalidJsonTemplate", f"config.{setting}: {error}") from None
        if not isinstance(value, dict):
            what = "nothing" if value is UNDEFINED else "no object"
            raise _Invalid(f"config.{setting}: gives {what}; a token has an object there.")
        return value

    return read


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_NEEDS: Final = (may_read("credential.get", _CREDENTIAL_NAME),)

TYPES: Final[dict[str, NodeType]] = {
    "JWTCreateNode": NodeType(
        _create,
        Form(
            "data",
            (
                _DATA_TYPE,
                _DATA,
                _HEADER_TYPE,
                _HEADER,
                _SECRET,
                _ALGORITHM,
                _ISSUER,
                _CREDENTIAL_NAME,
                _EXPIRES_IN,
                _DESTINATION_PATH,
            ),
        ),
        _NEEDS,
    ),
    "JWTDecodeNode": NodeType(_decode, Form("data", (_TOKEN, _COMPLETE, _DESTINATION_PATH))),
    "JWTVerifyNode": NodeType(
        _verify, Form("data", (_TOKEN, _SECRET, _ALGORITHM, _ISSUER, _CREDENTIAL_NAME, _ERROR_PATH)), _NEEDS
    ),
}
