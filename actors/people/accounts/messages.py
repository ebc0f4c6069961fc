"""Logging in, and the current user: bodies, messages and answers."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.values.structs import FORM, Body, Message, Query, View
from trunkline.actors.core.values.terms import DeviceClass, Id, IsoText, IsoTime, Links, RecordView
from trunkline.actors.people.accounts.reach import FilterType
from trunkline.actors.people.accounts.recent_items import RecentItemList

Email = Annotated[
    str,
    Meta(
        max_length=1024,
        pattern=r"^[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+(?!\n)$",
        description="an e-mail address",
        extra={FORM: "an e-mail address such as name@example.com"},
    ),
]
NewPassword = Annotated[
    str,
    Meta(
        min_length=12,
        max_length=2048,
        pattern=r"^(?=.*[A-Z])(?=.*[^A-Za-z0-9])(?=.*[0-9])(?=.*[a-z]).{12,}$",
        description="12 characters or more, with a lower-case and an upper-case letter, a digit and a sign",
        extra={
            FORM: "12 to 2048 characters with a lower-case and an upper-case letter, a digit and a sign among them"
        },
    ),
]
Scopes = Annotated[list[str], Meta(max_length=500)]
_Text = Annotated[str, Meta(max_length=1024)]


class UserCredentials(Body, frozen=True):
    """The credentials of a user. `tokenTTL` in seconds, 0 for a token that does not expire."""

    email: Email
    password: Annotated[str, Meta(max_length=2048)]
    two_factor_code: Annotated[str, Meta(max_length=2048)] | UnsetType = UNSET
    requested_scopes: Scopes | UnsetType = UNSET
    token_ttl: Annotated[int, Meta(ge=0)] | UnsetType = msgspec.field(default=UNSET, name="tokenTTL")


class DeviceCredentials(Body, frozen=True):
    """The credentials of a device: its id, and an access key of its application with the secret.

    Without both, the device is logged in by the certificate that its connection has presented.
    """

    device_id: Id
    key: str | UnsetType = UNSET
    secret: str | UnsetType = UNSET
    requested_scopes: Scopes | UnsetType = UNSET
    token_ttl: Annotated[int, Meta(ge=0)] | UnsetType = msgspec.field(default=UNSET, name="tokenTTL")


class AuthedUser(View, frozen=True):
    """A user's bearer token."""

    user_id: Id
    token: str
    needs_to_verify_email: bool


class AuthedDevice(View, frozen=True):
    """A device's bearer token. `restricted`: its key or certificate does not allow access to every device."""

    application_id: Id
    device_id: Id
    device_class: DeviceClass
    token: str
    restricted: bool
    owner_type: Literal["user", "organization"]
    filter_type: FilterType
    pub_topics: list[str]
    sub_topics: list[str]


class SsoQuery(Query, frozen=True):
    """The e-mail address that somebody wants to log in with."""

    email: Email


class SsoRequest(View, frozen=True):
    """How the users of a domain with single sign-on log in: the URL of their identity provider."""

    sso_type: Literal["SAML"]
    sso_request: Annotated[str, Meta(max_length=32767)]


class CurrentCredentials(Body, frozen=True):
    """The current password, needed to change e-mail address, password or token cutoff."""

    password: Annotated[str, Meta(max_length=2048)]
    two_factor_code: Annotated[str, Meta(max_length=2048)] | UnsetType = UNSET


class MePatch(Body, frozen=True):
    """Changes of the current user. `email`, `password` and `tokenCutoff` need `currentCredentials`."""

    email: Email | UnsetType = UNSET
    first_name: Annotated[str, Meta(min_length=1, max_length=1024)] | UnsetType = UNSET
    last_name: _Text | UnsetType = UNSET
    company_name: _Text | UnsetType = UNSET
    title: _Text | UnsetType = UNSET
    phone_number: _Text | UnsetType = UNSET
    location: _Text | UnsetType = UNSET
    url: _Text | UnsetType = UNSET
    password: NewPassword | UnsetType = UNSET
    token_cutoff: IsoText | UnsetType = UNSET
    current_credentials: CurrentCredentials | UnsetType = UNSET


class PasswordChange(Body, frozen=True):
    """A new password. `invalidateExistingTokens` ends all earlier logins and the user's API tokens."""

    password: Annotated[str, Meta(max_length=2048)]
    new_password: NewPassword
    two_factor_code: Annotated[str, Meta(max_length=2048)] | UnsetType = UNSET
    invalidate_existing_tokens: bool = False
    token_ttl: Annotated[int, Meta(ge=0)] | UnsetType = msgspec.field(default=UNSET, name="tokenTTL")


class MeChoice(Query, frozen=True):
    """What the answer about the current user contains."""

    include_recent: bool = False
    summary_exclude: str | None = None
    summary_include: str | None = None


class MeView(RecordView, frozen=True, kw_only=True):
    """The current user."""

    user_id: Id
    password_last_updated: IsoTime
    email: str
    email_verified: bool
    needs_to_verify_email: bool
    two_factor_auth_enabled: bool
    codehost_connected: bool
    full_name: str
    is_operator: bool | None = None
    recovery_codes: list[str] | None = None
    first_name: str | None = None
    last_name: str | None = None
    company_name: str | None = None
    title: str | None = None
    phone_number: str | None = None
    location: str | None = None
    url: str | None = None
    token_cutoff: IsoTime | None = None
    summary: dict[str, Any] | None = None
    recent_applications: RecentItemList | None = None
    recent_dashboards: RecentItemList | None = None
    recent_organizations: RecentItemList | None = None
    links: Links | None = msgspec.field(default=None, name="_links")


class Session(msgspec.Struct, frozen=True):
    """The login from which a user's token originates, also if the token was renewed since.

    `generation` is the number of password changes, `since_ms` the time of the login. A token is valid while its
    generation is the user's, its session did not begin before the user's token cutoff, and the user has not ended it.
    `id` is random, and empty for the session of an API token, which no logout ends.
    """

    generation: int
    since_ms: int
    id: str = ""


class CreateUser(Message, frozen=True):
    """Create the user at the ref. `password` is hashed by the actor, never stored."""

    email: str
    password: str
    first_name: str


class LogIn(Message, frozen=True):
    """Verify a password; the answer is the new `Session`, None if the password is wrong.

    A user with two-factor authentication also needs a code.
    """

    password: str
    two_factor_code: str | UnsetType = UNSET


class PatchMe(Message, frozen=True):
    """Change the user's record."""

    body: MePatch
    if_match: str | None = None


class ChangePassword(Message, frozen=True):
    """Change the password; the answer is a new `Session`. Earlier tokens stay valid unless the body ends them."""

    body: PasswordChange


class VerifyCredentials(Message, frozen=True):
    """Verify a password and a code, as a login does. Raises `Unauthorized` if one of them is wrong."""

    password: str
    two_factor_code: str | UnsetType = UNSET


class RequestVerification(Message, frozen=True):
    """Ask for a mail that verifies the e-mail address; the answer is the address."""

    throttle: ClassVar[str | None] = "verify_email"


class VerifyEmail(Message, frozen=True):
    """Note that the user has proved to read the mail of an address, if it is still that of the user."""

    email: str


class SetOperator(Message, frozen=True):
    """Say whether the user is an operator of the server, who may read its figures."""

    is_operator: bool


class SetPassword(Message, frozen=True):
    """Set a password without the old one (only operators may), and invalidate all earlier tokens."""

    password: str


class DeleteUser(Message, frozen=True):
    """Delete the user with what belongs to the user. Refused for the only user of the server."""


class GetMe(Message, frozen=True):
    """Read the current user."""

    user: bytes
    query: MeChoice
