"""A first experience: pages with a layout, endpoints that answer with them, and a group with one user.

The workflow that logs in is not created here, as workflows have actors of their own (`log_in_flow.py`).

Everything is created in one turn with the rules of single records. The records have names of their own; where the
application has such names already, all of them get the same suffix, or the present records are replaced.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.actors.core.records import records
from trunkline.actors.core.records.messages import CreateRecord, Creator, DeleteRecord, PatchRecord
from trunkline.actors.core.records.owner import RecordParent
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Body, Message, View
from trunkline.actors.platform.applications.messages import Slug
from trunkline.actors.presentation.experience.content import find_version
from trunkline.actors.presentation.experience.endpoints import ENDPOINTS, EndpointPost
from trunkline.actors.presentation.experience.groups import GROUPS, GroupPatch, GroupPost
from trunkline.actors.presentation.experience.kind import ENDPOINT, GROUP
from trunkline.actors.presentation.experience.routes import RouteTree
from trunkline.actors.presentation.experience.slugs import SLUGS, SlugPost
from trunkline.actors.presentation.experience.terms import Reply
from trunkline.actors.presentation.experience.users import (
    EXPERIENCE_USERS,
    ExperienceUserPatch,
    ExperienceUserPost,
    user_with_email,
)
from trunkline.actors.presentation.experience.versions import VERSIONS, VersionPatch
from trunkline.actors.presentation.experience.views import VIEWS, ViewPatch, ViewPost, ViewType, view_of_name

_SUFFIXES_MAX: Final = 100

_LAYOUT: Final = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>{{experience.page.name}}</title>
  </head>
  <body>
    {{component "%(header)s"}}
    <main>{{page}}</main>
  </body>
</html>
"""
_HEADER: Final = """<header><nav><a href="%(home)s">Home</a> <a href="%(log_in)s">Log in</a></nav></header>
"""
_HOME: Final = """<h1>Home</h1>
<p>This is the first page of the application.</p>
"""
_LOG_IN: Final = """<h1>Log in</h1>
{{#if pageData.error}}<p role="alert">{{pageData.error}}</p>{{/if}}
<form method="post" action="%(log_in)s">
  <p><label>E-mail address <input type="email" name="email" required></label></p>
  <p><label>Password <input type="password" name="password" required></label></p>
  <p><button>Log in</button></p>
</form>
"""
_NOT_FOUND: Final = """<h1>Not found</h1>
<p>There is no such page. <a href="%(home)s">Go to the first page.</a></p>
"""


class BootstrapBody(Body, frozen=True):
    """What is created beside views and endpoints, and what happens to records that have the same names."""

    replace_existing: bool = False
    create_users: bool = True
    create_groups: bool = True
    slug: Slug | UnsetType = UNSET


class Bootstrap(Message, frozen=True):
    """Create a first experience. The answer is a `Bootstrapped`; the user gets the hashed password."""

    body: BootstrapBody
    by: Creator
    password_hash: str


class BootstrapResult(View, frozen=True):
    """The suffix of all names, and the user with the password, which is shown only here."""

    resource_suffix: str
    email: str | None = None
    password: str | None = None


class Bootstrapped(msgspec.Struct, frozen=True):
    """What was created: the suffix of all names, the endpoint that takes the form, and the page with it."""

    suffix: str
    log_in_endpoint: str
    log_in_page: str


class Names(NamedTuple):
    """The names of what is created, with a suffix."""

    suffix: str

    @property
    def home(self) -> str:
        """The route of the first page."""
        return f"/home{self.suffix}" if self.suffix else "/"

    @property
    def log_in(self) -> str:
        """The route of the page for logging in, to which it also sends its form."""
        return f"/log-in{self.suffix}"

    @property
    def flow(self) -> str:
        """The name of the workflow that logs in."""
        return f"log-in{self.suffix}"

    @property
    def email(self) -> str:
        """The address of the user."""
        return f"user{self.suffix}@example.com"

    @property
    def group(self) -> str:
        """The name of the group."""
        return f"users{self.suffix}"

    def view(self, name: str) -> str:
        """The name of a view."""
        return name + self.suffix


_VIEWS: Final[tuple[tuple[str, ViewType, str], ...]] = (
    ("header", "component", _HEADER),
    ("main", "layout", _LAYOUT),
    ("home", "page", _HOME),
    ("log-in", "page", _LOG_IN),
    ("not-found", "page", _NOT_FOUND),
)


def bootstrap(owner: RecordParent, message: Bootstrap) -> Bootstrapped:
    """Stage a first experience. Raises `Invalid`, also if the slug is taken."""
    body = message.body
    names = Names("") if body.replace_existing else _free_names(owner, body)
    work = _Work(owner, message.by)
    views = work.views(names)
    groups = [work.group(names)] if body.create_groups else []
    if body.create_users:
        work.user(names, message.password_hash, groups)
    home, log_in = (Reply(value=views[name], type="page") for name in ("home", "log-in"))
    access = "group" if groups else "authenticated" if body.create_users else "public"
    fields = {"access": access, "experience_group_ids": groups, "unauthorized_reply": log_in}
    work.endpoint("get", names.home, static_reply=home, **fields)
    work.endpoint("get", names.log_in, static_reply=log_in, access="public")
    form = work.endpoint("post", names.log_in, access="public")
    develop = find_version(Staged(owner), owner.ref.id, owner.ref.id).doc
    if body.replace_existing or "notFoundReply" not in develop:
        reply = VersionPatch(not_found_reply=Reply(value=views["not-found"], type="page", status_code=404))
        owner.on_patch_record(work.change(VERSIONS.name, owner.ref.id, reply))
    if body.slug is not UNSET:
        work.create(SLUGS.name, SlugPost(slug=body.slug))
    return Bootstrapped(names.suffix, form, views["log-in"])


def _free_names(owner: RecordParent, body: BootstrapBody) -> Names:
    """The first names that nothing of the application has: without a suffix, or with -2, -3 and so on."""
    tree = _routes(owner)
    for number in range(1, _SUFFIXES_MAX + 1):
        names = Names("" if number == 1 else f"-{number}")
        views = (view_of_name(owner, type, names.view(name)) for name, type, _ in _VIEWS)
        routes = (
            tree.clashing(method, route)
            for method, route in (("get", names.home), ("get", names.log_in), ("post", names.log_in))
        )
        users = [_user_of(owner, names)] if body.create_users else []
        groups = [_group_of_name(owner, names.group)] if body.create_groups else []
        if all(found is None for found in (*views, *routes, *users, *groups)):
            return names
    raise Invalid(
        f"The application has {_SUFFIXES_MAX} such experiences; give replaceExisting to replace one."
    )


def _routes(owner: RecordParent) -> RouteTree:
    endpoints = records.all_of_kind(Staged(owner), ENDPOINT, owner.ref.id)
    return RouteTree((each.id, each.doc["method"], each.doc["route"]) for each in endpoints)


def _user_of(owner: RecordParent, names: Names) -> Found | None:
    return user_with_email(Staged(owner), owner.ref.id, names.email)


def _group_of_name(owner: RecordParent, name: str) -> bytes | None:
    groups = records.all_of_kind(Staged(owner), GROUP, owner.ref.id)
    return next((each.id for each in groups if each.doc["name"] == name), None)


class _Work(NamedTuple):
    """Creates single records, or changes those that have the same name."""

    owner: RecordParent
    by: Creator

    def create(self, resource: str, body: Body) -> str:
        return self.owner.on_create_record(CreateRecord(resource=resource, body=body, by=self.by)).id.hex()

    def change(self, resource: str, record: bytes, body: Body) -> PatchRecord:
        return PatchRecord(resource=resource, record=record, body=body, by=self.by)

    def _put(self, resource: str, record: bytes | None, post: Body, patch: Body) -> str:
        if record is None:
            return self.create(resource, post)
        self.owner.on_patch_record(self.change(resource, record, patch))
        return record.hex()

    def views(self, names: Names) -> dict[str, str]:
        """The ids of the views by their names without suffix."""
        ids: dict[str, str] = {}
        texts = {"home": names.home, "log_in": names.log_in, "header": names.view("header")}
        for name, type, template in _VIEWS:
            fields: dict[str, Any] = {"name": names.view(name), "body": template % texts}
            if type == "page":
                fields["layout_id"] = ids["main"]
            found = view_of_name(self.owner, type, fields["name"])
            ids[name] = self._put(VIEWS.name, found, ViewPost(view_type=type, **fields), ViewPatch(**fields))
        return ids

    def group(self, names: Names) -> str:
        fields: dict[str, Any] = {"name": names.group, "description": "May use the first page."}
        found = _group_of_name(self.owner, names.group)
        return self._put(GROUPS.name, found, GroupPost(**fields), GroupPatch(**fields))

    def user(self, names: Names, password_hash: str, groups: list[str]) -> str:
        fields: dict[str, Any] = {
            "email": names.email,
            "password": password_hash,
            "experience_group_ids": groups,
        }
        user = _user_of(self.owner, names)
        found = None if user is None else user.id
        return self._put(
            EXPERIENCE_USERS.name, found, ExperienceUserPost(**fields), ExperienceUserPatch(**fields)
        )

    def endpoint(self, method: Literal["get", "post"], route: str, **fields: Any) -> str:
        """An endpoint, in place of the one whose route clashes, if there is one."""
        clash = _routes(self.owner).clashing(method, route)
        if clash is not None:
            self.owner.on_delete_record(DeleteRecord(resource=ENDPOINTS.name, record=clash))
        return self.create(ENDPOINTS.name, EndpointPost(route=route, method=method, **fields))
