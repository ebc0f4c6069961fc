"""HashNode: the hash of a text, or its HMAC where a secret is set. A secret that gives nothing is refused.

Algorithms: MD5, SHA1, SHA224, SHA256, SHA384, SHA512 and the SHA3 of those lengths, RIPEMD and Whirlpool; the last
two only where OpenSSL on the server has them. An empty text has a hash as well. `dataEncodingTemplate` and
`secretEncodingTemplate` (utf8) say how bytes are written in the texts, `encodingTemplate` (hex) how the hash is.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from trunkline.actors.core.formulas.byte_texts import FROM_TEXT, TO_TEXT
from trunkline.actors.core.runtime.computing import in_thread
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import Config, PathSetting, TemplateSetting
from trunkline.actors.engine.tools import (
    needed_path,
    needed_text_reader,
    shortened,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused

_Of = TypeVar("_Of")

TYPE: Final = "HashNode"

_DATA: Final = TemplateSetting("dataTemplate", is_needed=True)
_DATA_ENCODING: Final = TemplateSetting("dataEncodingTemplate")
_ALGORITHM: Final = TemplateSetting("algorithmTemplate")
_SECRET: Final = TemplateSetting("secretTemplate")
_SECRET_ENCODING: Final = TemplateSetting("secretEncodingTemplate")
_ENCODING: Final = TemplateSetting("encodingTemplate")
_DESTINATION_PATH: Final = PathSetting("destinationPath", is_needed=True)
FORM: Final = Form(
    "logic", (_DATA, _DATA_ENCODING, _ALGORITHM, _SECRET, _SECRET_ENCODING, _ENCODING, _DESTINATION_PATH)
)

INLINE_BYTES_MAX: Final = 262_144
"""More bytes are hashed in a thread: they take about a millisecond."""

_ALGORITHMS: Final = {
    **{name: name for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "whirlpool")},
    **{f"sha3{bits}": f"sha3_{bits}" for bits in ("224", "256", "384", "512")},
    "ripemd": "ripemd160",
    "ripemd160": "ripemd160",
}


def prepare(config: Config) -> NodeStep:
    data, algorithm = needed_text_reader(config, _DATA), text_reader(config, _ALGORITHM)
    secret, destination = text_reader(config, _SECRET), needed_path(config, _DESTINATION_PATH)
    data_bytes = _bytes_reader(config, _DATA, data, _DATA_ENCODING)
    secret_bytes = _bytes_reader(config, _SECRET, secret, _SECRET_ENCODING)
    encoding, has_secret = text_reader(config, _ENCODING), bool(text_of(config, _SECRET))

    def step(visit: Visit) -> Any:
        word = algorithm(visit).strip() or "SHA256"
        name = _ALGORITHMS.get(word.lower().replace("-", "").replace("_", ""))
        if name is None:
            raise _no_such_hash(word)
        write = _named(TO_TEXT, _ENCODING, encoding(visit) or "hex")
        content, key = data_bytes(visit), secret_bytes(visit)
        if has_secret and not key:
            raise refused("config.secretTemplate: gives nothing, and a hash without a secret proves nothing.")
        if len(content) > INLINE_BYTES_MAX:
            return long_hash(visit, name, key, content, write)
        visit.put(destination, write(_hash(name, key, content)))
        return 0

    async def long_hash(
        visit: Visit, name: str, key: bytes, content: bytes, write: Callable[[bytes], str]
    ) -> int:
        visit.put(destination, write(await in_thread(_hash, name, key, content)))
        return 0

    return step


def _hash(name: str, key: bytes, content: bytes) -> bytes:
    try:
        if key:
            return hmac.digest(key, content, name)
        return hashlib.new(name, content, usedforsecurity=False).digest()
    except ValueError:
        raise _no_such_hash(name) from None


def _no_such_hash(name: str) -> NodeError:
    return refused(f"config.algorithmTemplate: {shortened(name)} is not a hash that this server has.")


def _bytes_reader(
    config: Config, setting: TemplateSetting, read: Callable[[Visit], str], encoding_setting: TemplateSetting
) -> Callable[[Visit], bytes]:
    encoding = text_reader(config, encoding_setting)

    def read_bytes(visit: Visit) -> bytes:
        word = encoding(visit) or "utf8"
        decode = _named(FROM_TEXT, encoding_setting, word)
        try:
            return decode(read(visit))
        except ValueError:
            raise refused(f"config.{setting}: gives a text that is not {word}.") from None

    return read_bytes


def _named(table: Mapping[str, _Of], setting: TemplateSetting, word: str) -> _Of:
    found = table.get(word.strip().lower())
    if found is None:
        raise refused(f"config.{setting}: gives {shortened(word)}; give one of {', '.join(table)}.")
    return found
