"""JSON as it is shown to who may see what happened, and not the secrets in it.

Owns what is hidden. Which names are those of secrets is in `secret_names.py`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from trunkline.actors.core.values.secret_names import is_secret_name

HIDDEN: Final = "(hidden)"
_SECRETS_OF_DEVICES: Final = "accessSecret"
"""The column of a CSV, of `deviceRecipe.bulkCreate`, with secrets of access keys."""
_TOKEN: Final = re.compile(r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}")
"""A JSON web token: those of this server open the API for whoever has them."""


def without_secrets(value: Any) -> Any:
    """A copy of JSON with `HIDDEN` in place of passwords, of tokens, and of what proves who sends a request."""
    if isinstance(value, str):
        return HIDDEN if _SECRETS_OF_DEVICES in value else _TOKEN.sub(HIDDEN, value)
    if isinstance(value, list):
        return [without_secrets(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: HIDDEN if is_secret_name(name) else without_secrets(each) for name, each in value.items()}
