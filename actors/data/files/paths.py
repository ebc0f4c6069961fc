"""The paths and names of files.

A path is a list of names. `/a/b`, `a/b` and `/a/b/` are the same path, and the empty text is the root. Names are
compared exactly, with regard to case, in the normal form NFC: systems write the same letters in different forms, and
nobody can see the difference.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from trunkline.actors.core.values.errors import Invalid

NAME_CHARS_MAX: Final = 1024

_INVISIBLE: Final = ("Cc", "Cs", "Zl", "Zp")
"""Control characters, halves of characters, and separators of lines and paragraphs."""


def split_path(text: str, field: str) -> tuple[str, ...]:
    """The names of a path. Raises `Invalid` for a name that no file may have; the sentence begins with `field`."""
    text = unicodedata.normalize("NFC", text)
    text = text.removeprefix("/").removesuffix("/")
    if not text:
        return ()
    names = tuple(text.split("/"))
    for name in names:
        _check_name(name, field)
    return names


def path_of(names: tuple[str, ...]) -> str:
    """The text of a path, as it is shown: `/` for the root, else `/a/b`."""
    return "/" + "/".join(names)


def directory_of(names: tuple[str, ...]) -> str:
    """The text of the directory of a file, as it is shown: with a slash at the end, so that the name can follow it."""
    return "".join(("/", *(f"{name}/" for name in names)))


def _check_name(name: str, field: str) -> None:
    if not name:
        raise Invalid(f"{field}: has two slashes in a row; give a name between them, or one slash.")
    if name in (".", ".."):
        raise Invalid(f"{field}: {name!r} is not a valid name; give the whole path, such as /photos/2024.")
    if len(name) > NAME_CHARS_MAX:
        raise Invalid(f"{field}: a name has {len(name)} characters; at most {NAME_CHARS_MAX} are allowed.")
    if any(unicodedata.category(character) in _INVISIBLE for character in name):
        raise Invalid(f"{field}: {name[:100]!r} has a control character; leave it out.")
