"""The specification of the link as data: its CDDL and its examples. Owns no test."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import cbor2
import pycddl

DOCUMENT: Final = Path(__file__).parents[3] / "docs" / "reference" / "device-link.md"
_CDDL = re.compile(r"```cddl\n(.*?)```", re.DOTALL)
_EXAMPLE = re.compile(r"\*\*(.*?)\*\* \(from the (client|server)\)\n\n`(.*?)`\n\n```hex\n(.*?)```", re.DOTALL)
RULES: Final = {
    "client": ("hello", "report", "rows", "columns", "received"),
    "server": ("welcome", "stored", "refusal", "command"),
}
"""The rules of the CDDL, by the kind with which a frame begins."""


class Example(NamedTuple):
    """An example: who sends it, how it is shown, and its bytes."""

    title: str
    sender: str
    shown: str
    frame: bytes

    @property
    def value(self) -> Any:
        return cbor2.loads(self.frame)


@cache
def cddl() -> str:
    return "\n".join(_CDDL.findall(DOCUMENT.read_text(encoding="utf-8")))


@cache
def examples() -> tuple[Example, ...]:
    found = _EXAMPLE.findall(DOCUMENT.read_text(encoding="utf-8"))
    return tuple(Example(title, sender, shown, bytes.fromhex(text)) for title, sender, shown, text in found)


@cache
def _schema(rule: str) -> pycddl.Schema:
    return pycddl.Schema(f"start = {rule}\n{cddl()}")


def check_frame(sender: str, frame: bytes) -> None:
    """Raise unless a frame is as the document says. The rule is that of its kind."""
    kind = cbor2.loads(frame)[0]
    _schema(RULES[sender][kind]).validate_cbor(frame)


def check_text(sender: str, frame: str) -> None:
    """The same of a frame in JSON."""
    check_frame(sender, cbor2.dumps(json.loads(frame)))
