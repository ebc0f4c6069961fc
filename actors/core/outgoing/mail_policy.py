"""How mails are written: with the line ends of SMTP, and with a class for each kind of header that is made once.

Owns the policy for all messages. The registry of Python makes a new class for each header of each message, and a class
refers to itself: only the garbage collector frees it, which this server lets rest (`http/wire/garbage_collection.py`).
"""

from __future__ import annotations

from email.headerregistry import HeaderRegistry
from email.policy import SMTP
from typing import Any, Final


class _Headers(HeaderRegistry):
    """Headers by lower-case name: a message of this server has a few kinds of them."""

    def __init__(self) -> None:
        super().__init__()
        self._classes: dict[type, Any] = {}

    def __getitem__(self, name: str) -> Any:
        kind = self.registry.get(name.lower(), self.default_class)
        if kind not in self._classes:
            self._classes[kind] = super().__getitem__(name)
        return self._classes[kind]


MAIL_POLICY: Final = SMTP.clone(header_factory=_Headers())
