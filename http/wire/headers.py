"""The types of header fields: what ASGI calls headers, as the modules of the wire hand them to each other.

Owns no behaviour. A module of its own, so that neither requests nor responses import each other for a type.
"""

from __future__ import annotations

Headers = list[tuple[bytes, bytes]]
"""Names in lower case and values, in the order in which they came or are to be sent."""

Fields = Headers | tuple[tuple[bytes, bytes], ...]
"""The header fields of a response; a tuple where the same ones come often, so that they are checked only once."""
