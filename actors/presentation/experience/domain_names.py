"""Which names may be domains of experiences: those that the operator lists, and never one of this server.

A domain needs no proof in DNS; the list is the proof, made by somebody who may be asked. Without it no domain can be
created, because the server cannot know by which names its API is called, and who takes such a name gets the logins
to it. Domains that are stored stay as they are.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from trunkline.actors.core.values.errors import Invalid
from trunkline.limits.settings import Settings


class _Entry(NamedTuple):
    """A name, or what names end with; `application` is the id of the only one that may have them."""

    name: str
    is_suffix: bool
    application: str

    def permits(self, name: str, application: str) -> bool:
        fits = name.endswith(self.name) if self.is_suffix else name == self.name
        return fits and self.application in ("", application)


class DomainNames:
    """The names of one server. A component of the system."""

    def __init__(self, settings: Settings) -> None:
        url = settings.public_url
        self.own_host = None if url is None else urlsplit(url).hostname
        self._suffix = f".{settings.experience_suffix}"
        self._entries = [_entry(text) for text in (settings.experience_domains or "").split()]

    def check(self, name: str, application: bytes) -> None:
        """Raise `Invalid` if an application may not have a name, which is in lower case, as its domain."""
        if name == self.own_host or name == "localhost" or name.endswith(".localhost"):
            raise Invalid(f"domainName: {name} is a name of this server; choose another one.")
        if f".{name}".endswith(self._suffix):
            raise Invalid(
                f"domainName: names that end with {self._suffix} are those of slugs; create a slug."
            )
        if not any(entry.permits(name, application.hex()) for entry in self._entries):
            raise Invalid(
                f"domainName: {name} is not among the names that the operator of this server permits to application "
                f"{application.hex()} (setting experience_domains); ask for it, or use a slug."
            )


def _entry(text: str) -> _Entry:
    """An entry of the setting: a name, `*.` and a name, or `*`; then perhaps `=` and the id of an application."""
    name, _, application = text.partition("=")
    is_suffix = name.startswith("*")
    return _Entry(name.removeprefix("*"), is_suffix, application)
