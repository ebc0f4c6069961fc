"""The URL of the content of a file: the address of a public file, or a link to a private one, which expires."""

from __future__ import annotations

from urllib.parse import quote

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.signatures import PUBLIC_PATH
from trunkline.actors.data.files.messages import ShownFile


def file_url(
    contents: Contents, application: bytes, file: ShownFile, *, expires_ms: int | None
) -> str | None:
    """The URL; None if the file has no content. `expires_ms` is None for a public file."""
    content = file.content
    if content is None:
        return None
    if expires_ms is None:
        return f"{contents.signatures.base_url}{PUBLIC_PATH}/{quote(f'{application.hex()}/{file.path}')}"
    return contents.link(
        application,
        content.content,
        content.stored,
        file_name=content.name,
        content_type=content.type,
        expires_ms=expires_ms,
    )
