"""Members of an organization, who are invited, get other roles, leave, are removed, or delete their accounts.

A call passes if the role of the member allows it at some moment while it is under way, and a call after the answer to a
removal or another role is judged by that. API tokens of members can do no more than their scopes, than the member, and
nothing once they are inactive.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from tests.simulation.model import Book, Broken, Change, State
from tests.simulation.part import Part
from tests.simulation.site import PASSWORD
from tests.simulation.world import World
from trunkline.actors import server_users
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.accounts.messages import VerifyEmail

MEMBERS: Final = 3
ROLES: Final = ("none", "view", "collaborate", "edit", "admin")
"""From the least to the most."""
TOKENS_MAX: Final = 6
_ACTIVE, _INACTIVE = "active", "inactive"


class Call(NamedTuple):
    """A call of an application, and the least role that may make it."""

    method: str
    path: str
    body: object
    role: str


CALLS: Final = (
    Call("GET", "/devices", None, "view"),
    Call("POST", "/events", {"level": "info", "subject": "s"}, "collaborate"),
    Call("GET", "/keys", None, "view"),
    Call("POST", "/keys", {"description": "k"}, "edit"),
)
READ: Final = CALLS[0]


class Person(NamedTuple):
    """A user with a login."""

    email: str
    id: str
    token: str


class Token(NamedTuple):
    """An API token of a person: its path and its text; it may only list devices, if it has a `scope`."""

    person: int
    path: str
    text: str
    is_scoped: bool


class People:
    """The organization: the roles of its members by number, the accounts, and the API tokens."""

    def __init__(self) -> None:
        self.org = ""
        self.application = ""
        self.roles = Book("roles")
        self.accounts = Book("accounts")
        self.api_tokens = Book("API tokens")
        self.all: list[Person] = []
        self.tokens: dict[str, Token] = {}

    def one(self, chance: Random, *, is_member: bool = True) -> int | None:
        """Somebody whose membership is sure, and whose account is there."""
        known = [
            number
            for number in range(len(self.all))
            if self.roles.thing(number).is_sure
            and (self.roles.thing(number).state is not None) == is_member
            and self.accounts.thing(number).is_sure
            and self.accounts.thing(number).state is not None
        ]
        return chance.choice(known) if known else None


async def invite(world: World, chance: Random) -> None:
    """Invite somebody, who accepts."""
    people = world.of(People)
    number = people.one(chance, is_member=False)
    if number is None:
        return
    person, role = people.all[number], chance.choice(ROLES)
    answer = await world.call("POST", f"{people.org}/invites", {"email": person.email, "role": role})
    if answer is None or answer.status != 200:
        return
    answer = await world.call("GET", "/me/invites", token=person.token)
    if answer is None or answer.status != 200 or not answer.body or not people.roles.thing(number).is_sure:
        return
    found = answer.body[-1]
    change = Change([(people.roles, number, found["role"])])
    await world.change(
        change, "POST", f"/me/invites/{found['id']}", {"action": "accept"}, token=person.token, chance=chance
    )


async def set_role(world: World, chance: Random) -> None:
    people = world.of(People)
    number = people.one(chance)
    if number is not None:
        role = chance.choice([each for each in ROLES if each != people.roles.thing(number).state])
        change = Change([(people.roles, number, role)])
        body = {"userId": people.all[number].id, "role": role}
        await world.change(change, "PATCH", f"{people.org}/member", body, chance=chance)
        await _use_at_once(world, number, chance)


async def remove(world: World, chance: Random) -> None:
    """The owner removes a member, or the member leaves."""
    people = world.of(People)
    number = people.one(chance)
    if number is not None and chance.random() < 0.6:
        token = chance.choice((world.token, people.all[number].token))
        path = f"{people.org}/member?userId={people.all[number].id}"
        change = Change([(people.roles, number, None)])
        await world.change(change, "DELETE", path, token=token, chance=chance)
        await _use_at_once(world, number, chance)


async def _use_at_once(world: World, number: int, chance: Random) -> None:
    """Call with the next request, which another process may get."""
    if world.partitions > 1:
        await _use(world, chance, number, chance.choice((READ, *CALLS)), None)


async def delete_account(world: World, chance: Random) -> None:
    people = world.of(People)
    number = people.one(chance, is_member=chance.random() < 0.5)
    if number is not None and chance.random() < 0.15:
        change = Change([(people.accounts, number, None), (people.roles, number, None)])
        body = {"password": PASSWORD}
        await world.change(change, "DELETE", "/me", body, token=people.all[number].token, chance=chance)


async def create_token(world: World, chance: Random) -> None:
    people = world.of(People)
    number = people.one(chance)
    if number is None or len(people.tokens) >= TOKENS_MAX:
        return
    body: dict[str, object] = {"name": "t"}
    is_scoped = chance.random() < 0.5
    if is_scoped:
        body["scope"] = ["devices.get"]
    answer = await world.call("POST", "/me/tokens", body, token=people.all[number].token)
    if answer is not None and answer.status == 201:
        id = next(value for name, value in answer.body.items() if name.endswith("TokenId"))
        people.tokens[id] = Token(number, f"/me/tokens/{id}", answer.body["token"], is_scoped)
        Change([(people.api_tokens, id, _ACTIVE)]).stored()


async def switch_token(world: World, chance: Random) -> None:
    people = world.of(People)
    sure = [id for id in people.api_tokens.sure() if people.accounts.thing(people.tokens[id].person).is_sure]
    if sure:
        id = chance.choice(sure)
        token = people.tokens[id]
        after = chance.choice((None, _INACTIVE if people.api_tokens.thing(id).state == _ACTIVE else _ACTIVE))
        change = Change([(people.api_tokens, id, after)])
        method, body = ("DELETE", None) if after is None else ("PATCH", {"status": after})
        own = people.all[token.person].token
        await world.change(change, method, token.path, body, token=own, chance=chance)


async def use(world: World, chance: Random) -> None:
    """A member makes a call, with a login or with an API token."""
    people = world.of(People)
    call = chance.choice(CALLS)
    if people.tokens and chance.random() < 0.5:
        id = chance.choice(list(people.tokens))
        await _use(world, chance, people.tokens[id].person, call, id)
    elif people.all:
        await _use(world, chance, chance.randrange(len(people.all)), call, None)


async def _use(world: World, chance: Random | None, number: int, call: Call, id: str | None) -> None:
    people = world.of(People)
    text = people.all[number].token if id is None else people.tokens[id].text
    with (
        people.roles.watched() as roles,
        people.accounts.watched() as accounts,
        people.api_tokens.watched() as tokens,
    ):
        path = people.application + call.path
        answer = await world.call(call.method, path, call.body, token=text, chance=chance)
    if answer is None or answer.status >= 500:
        return
    needed = ROLES.index(call.role)
    enough = {_is_enough(role, needed) for role in roles.allowed(number)}
    there = {account is not None for account in accounts.allowed(number)}
    active = {True} if id is None else {state == _ACTIVE for state in tokens.allowed(id)}
    in_scope = id is None or not people.tokens[id].is_scoped or call is READ
    passed = answer.status < 300
    conditions = (enough, there, active, {in_scope})
    if passed and any(each == {False} for each in conditions):
        raise Broken(
            f"{call.method} {path} passed; the roles can only be {roles.allowed(number)}, {conditions}"
        )
    if not passed and all(each == {True} for each in conditions):
        raise Broken(
            f"{call.method} {path} is {answer.status}; the roles can only be {roles.allowed(number)}"
        )
    world.reached[f"a member was {'served' if passed else 'refused'}"] += 1


def _is_enough(role: State, needed: int) -> bool:
    return isinstance(role, str) and ROLES.index(role) >= needed


async def prepare(world: World) -> None:
    people = world.of(People)
    answer = await world.call("POST", "/orgs", {"name": "org"})
    assert answer is not None
    people.org = f"/orgs/{answer.body['orgId']}"
    answer = await world.call("POST", "/applications", {"name": "shared", "orgId": answer.body["orgId"]})
    assert answer is not None
    people.application = f"/applications/{answer.body['applicationId']}"
    for number in range(MEMBERS):
        email = f"member{number}@example.com"
        system = world.life.root
        id = await server_users.add_user(system, email, PASSWORD)
        await system.ask(Ref("user", ROOT, bytes.fromhex(id)), VerifyEmail(email=email))
        answer = await world.call("POST", "/auth/user", {"email": email, "password": PASSWORD}, token="")
        assert answer is not None
        people.all.append(Person(email, id, answer.body["token"]))
        Change([(people.accounts, number, email)]).stored()
        people.roles.thing(number)
        await invite(world, Random(number))


async def look(world: World) -> None:
    """The organization names its members with their roles, and each call is judged by these."""
    people = world.of(People)
    with people.roles.watched() as window:
        answer = await world.call("GET", people.org)
    assert answer is not None
    found = {each["userId"]: each["role"] for each in answer.body["members"]}
    window.check({number: found[person.id] for number, person in enumerate(people.all) if person.id in found})
    for number, person in enumerate(people.all):
        with people.accounts.watched() as accounts:
            answer = await world.call("GET", "/me", token=person.token)
        assert answer is not None
        accounts.check({number: person.email} if answer.status == 200 else {}, [number])
        await _use(world, None, number, READ, None)
    for id, token in people.tokens.items():
        await _use(world, None, token.person, READ, id)


PART: Final = Part(
    prepare,
    {
        invite: 2,
        set_role: 3,
        remove: 2,
        delete_account: 1,
        create_token: 2,
        switch_token: 2,
        use: 10,
    },
    look,
    divided=True,
)
