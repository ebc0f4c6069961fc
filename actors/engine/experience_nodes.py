"""Nodes of the same shape for users and for groups of an experience: those that find records, and create one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trunkline.actors.core.records.resource import Resource
from trunkline.actors.engine.bodies import query_reader, with_error
from trunkline.actors.engine.device_choice import QueryReader
from trunkline.actors.engine.experience import GivenReader, create, listed
from trunkline.actors.engine.heavy_work import check_payload
from trunkline.actors.engine.node_type import Prepare
from trunkline.actors.engine.pages import page_reader
from trunkline.actors.engine.settings import RESULT, ChoiceSetting, Config, TemplateSetting
from trunkline.actors.engine.tools import choice_of, path_of
from trunkline.actors.engine.visit import NodeStep, Visit


def finding(
    resource: Resource,
    noun: str,
    find_method: ChoiceSetting,
    sort_field: ChoiceSetting,
    one: Callable[[Config], Callable[[Visit], Any]],
    query: Callable[[Config, str], QueryReader],
) -> Prepare:
    """Prepares a node that finds records by `findMethod`: `one` with the first of the methods, `query` otherwise."""

    def prepare(config: Config) -> NodeStep:
        result, method = path_of(config, RESULT), choice_of(config, find_method)
        find = one(config) if method == find_method.options[0] else page(config, method)

        async def step(visit: Visit) -> int:
            visit.put(result, await find(visit))
            check_payload(visit)
            return 0

        return step

    def page(config: Config, method: str) -> Callable[[Visit], Any]:
        wanted, paging = query(config, method), page_reader(config, noun, sort_field)

        async def find(visit: Visit) -> Any:
            asked = paging(visit)
            chosen = resource.page(query=await wanted(visit), **asked.page)  # type: ignore[call-arg]
            return asked.pick(await listed(visit, resource, chosen))

        return find

    return prepare


def creating(resource: Resource, given: Callable[[Config], GivenReader]) -> Prepare:
    """Prepares a node that creates a record of what it is given."""

    def prepare(config: Config) -> NodeStep:
        result, read = path_of(config, RESULT), given(config)

        async def work(visit: Visit) -> Any:
            return await create(visit, resource, read(visit))

        return lambda visit: with_error(visit, result, work(visit))

    return prepare


def text_query(config: Config, setting: TemplateSetting) -> QueryReader:
    """Reads a query from a template."""
    read = query_reader(config, setting)

    async def query(visit: Visit) -> dict[str, Any]:
        return read(visit)

    return query
