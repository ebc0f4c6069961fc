"""Names of fields and headers whose values are secrets: what proves who sends a request, passwords and keys of APIs."""

from __future__ import annotations

from typing import Final

_NAMES: Final = frozenset(
    {"authorization", "cookie", "password", "proxyauthorization", "secret", "setcookie", "token"}
)
_ENDINGS: Final = ("accesstoken", "apikey", "apitoken", "authtoken")
"""Of names with a prefix, such as `X-Api-Key` and `acme_auth_token`."""


def is_secret_name(name: str) -> bool:
    """Whether the value of a field or header with this name is a secret; `-` and `_` in it do not count."""
    plain = name.lower().replace("-", "").replace("_", "")
    return plain in _NAMES or plain.endswith(_ENDINGS)
