"""Entity tags of HTTP: whether a client has already what it asks for (RFC 9110, 13.1.2)."""

from __future__ import annotations


def tag_matches(if_none_match: str | None, etag: str) -> bool:
    """Whether the header `If-None-Match` names this tag, which is given without quotes."""
    if if_none_match is None:
        return False
    tags = {tag.strip().removeprefix("W/").strip('"') for tag in if_none_match.split(",")}
    return "*" in tags or etag in tags
