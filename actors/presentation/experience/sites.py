"""Sites: what a version of an experience serves, in memory, and the names under which it is found.

A site is found by the host of a request: a domain, a slug, or the `endpointSlug` of an application, which serves
`develop`. What it serves is read at its first use and kept until something of the application changes. Kept sites are
bounded by the stored bytes of their endpoints and views.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, NamedTuple

import structlog

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.owner import unique_key
from trunkline.actors.core.records.source import Source
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.global_values import global_values
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.presentation.experience.content import DEVELOP_NAME, all_in, find_version
from trunkline.actors.presentation.experience.kind import (
    DEVELOP,
    DOMAIN,
    ENDPOINT,
    ENDPOINT_COPY,
    SLUG,
    VERSION,
    VIEW,
    VIEW_COPY,
)
from trunkline.actors.presentation.experience.rendering import View
from trunkline.actors.presentation.experience.routes import RouteTree
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.errors import CannotOpen
from trunkline.store.keyring import Keyring

_log = structlog.get_logger("trunkline.experience")

SERVED: Final = tuple(
    keys.kind_prefix(kind.name) for kind in (ENDPOINT, VIEW, VERSION, DEVELOP, ENDPOINT_COPY, VIEW_COPY)
)
"""What the keys of records begin with that a site is made of."""


class Address(NamedTuple):
    """Where a name leads: an application, and the name of the version that serves it, None if none does."""

    application: bytes
    version: str | None


class Certificate(NamedTuple):
    """The key, the certificate and its issuers, as PEM."""

    pem: str

    def __repr__(self) -> str:
        return "Certificate(***)"


class Site(NamedTuple):
    """What a version of an experience serves. `version_id` is None for `develop`."""

    application: bytes
    application_name: str
    version: str
    version_id: bytes | None
    settings: Doc
    globals: Doc
    routes: RouteTree
    endpoints: Mapping[bytes, Doc]
    view_docs: Mapping[str, Doc]
    views: Mapping[str, View]
    components: Mapping[str, View]


class _Kept(NamedTuple):
    """A site, the stored application of which it was made, and its size."""

    site: Site
    application: bytes
    size: int


class Sites:
    """The sites of one system. A component."""

    def __init__(self, system: Host, suffix: str) -> None:
        self.suffix = suffix
        """What follows the slug of an experience, and a dot, in the name of its host."""
        self._system = system
        self._kept: OrderedDict[tuple[bytes, str], _Kept] = OrderedDict()
        self._bytes = 0
        system.forgotten.append(self.changed)

    def of_domain(self, name: str) -> Address | None:
        """Where the name of a domain leads; None if nobody has it."""
        return self._named(DOMAIN, "domainName", name)

    def domains(self) -> list[str]:
        """The names of all domains."""
        lo = keys.kind_prefix(DOMAIN.name)
        return self._system.store.look(
            lambda snapshot: [
                decode(value)["domainName"]
                for _, value in snapshot.range(keys.RECORDS, lo, keys.prefix_end(lo))
            ],
            wide=True,
        )

    def certificate_of(self, name: str) -> Certificate | None:
        """The certificate of a domain and its key; None if it has none that can be used."""
        journal = self._system.journal
        holder = journal.get(keys.UNIQUE, keys.unique_key(DOMAIN.name, ROOT, "domainName", name))
        if holder is None:
            return None
        id = holder[-keys.ID_BYTES :]
        found = records.find(journal, DOMAIN, holder[: keys.ID_BYTES], id)
        if found is None or "sslCert" not in found.doc:
            return None
        keyring = self._system.component(Keyring)
        try:
            key = keyring.unseal(found.doc["sslKey"], kind=DOMAIN.name, id=id, field="sslKey")
        except CannotOpen as problem:
            _log.error("the key of a domain cannot be opened", domain=name, problem=str(problem))
            return None
        return Certificate("\n".join((key, found.doc["sslCert"], found.doc.get("sslBundle", ""))))

    def of_slug(self, slug: str) -> Address | None:
        """Where a slug leads; None if nobody has it."""
        found = self._named(SLUG, "slug", slug)
        if found is not None:
            return found
        id = self._system.journal.get(keys.UNIQUE, unique_key(APPLICATION, "endpointSlug", slug))
        return None if id is None else Address(bytes(id), DEVELOP_NAME)

    def _named(self, kind: Kind, field: str, name: str) -> Address | None:
        journal = self._system.journal
        holder = journal.get(keys.UNIQUE, keys.unique_key(kind.name, ROOT, field, name))
        if holder is None:
            return None
        application, id = holder[: keys.ID_BYTES], holder[-keys.ID_BYTES :]
        found = records.find(journal, kind, application, id)
        return None if found is None else Address(application, found.doc.get("version"))

    def get(self, application: bytes, version: str) -> Site | None:
        """The site of a version, by name; None if there is no such version or application."""
        raw = records.raw_of(self._system.journal.get, APPLICATION, ROOT, application)
        if raw is None:
            return None
        place = (application, version)
        kept = self._kept.get(place)
        if kept is not None and kept.application == raw:
            self._kept.move_to_end(place)
            return kept.site
        self._drop(place)
        with self._system.store.snapshot() as snapshot:
            try:
                kept = _read(snapshot, application, version, raw)
            except NotFound:
                return None
        self._kept[place] = kept
        self._bytes += kept.size
        while self._bytes > self._system.limits.experience_sites_bytes_max and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))
        return kept.site

    def changed(self, application: bytes) -> None:
        """Something of the experience of an application is stored that was not before."""
        for place in [place for place in self._kept if place[0] == application]:
            self._drop(place)

    def _drop(self, place: tuple[bytes, str]) -> None:
        kept = self._kept.pop(place, None)
        if kept is not None:
            self._bytes -= kept.size


def _read(source: Source, application: bytes, version: str, raw: bytes) -> _Kept:
    """Read a site. Raises `NotFound`."""
    owner: Doc = decode(raw)
    found = find_version(source, application, version)
    version_id = None if found.id == application else found.id
    endpoints = list(all_in(source, ENDPOINT, application, version_id))
    views = list(all_in(source, VIEW, application, version_id))
    made = {each.id.hex(): View(each.doc["viewType"], each.doc["name"], each.doc["body"]) for each in views}
    site = Site(
        application=application,
        application_name=owner["name"],
        version=found.doc["version"],
        version_id=version_id,
        settings=found.doc,
        globals=global_values(owner.get("globals", ())) | global_values(found.doc.get("globals", ())),
        routes=RouteTree((each.id, each.doc["method"], each.doc["route"]) for each in endpoints),
        endpoints={each.id: each.doc for each in endpoints},
        view_docs={each.id.hex(): each.doc for each in views},
        views=made,
        components={view.name: view for view in made.values() if view.kind == "component"},
    )
    size = len(found.raw) + len(raw) + sum(len(each.raw) for found in (endpoints, views) for each in found)
    return _Kept(site, raw, size)
