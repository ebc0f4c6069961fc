"""The type of the function that says a refusal of a connection itself in the form of all errors."""

from __future__ import annotations

from collections.abc import Callable

from trunkline.http.wire.headers import Headers

Refuse = Callable[[int, str], tuple[Headers, bytes]]
"""`(status, sentence) -> headers and body` of a response that the connection gives by itself."""
