"""Application templates: what is shown, and what is refused at the start. `test_clones.py` applies them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Server
from trunkline.actors.portability.templates.catalogue import Catalogue, load_catalogue
from trunkline.actors.portability.templates.form import COUNTED
from trunkline.limits.errors import SettingsError
from trunkline.limits.table import Limits

StartServer = Callable[..., Any]

PATH = "/applicationTemplates"
PACKAGE = load_catalogue(None, Limits())
SHOWN = tuple(COUNTED.values())


def template(number: int, **fields: Any) -> dict[str, Any]:
    day = f"2026-01-{number + 1:02}T00:00:00.000Z"
    return {
        "id": f"{number:024x}",
        "name": f"template {number}",
        "creationDate": day,
        "lastUpdated": day,
        **fields,
    }


def category(number: int, above: int | None = None) -> dict[str, Any]:
    parent = {} if above is None else {"parentId": f"{above:024x}"}
    return {"id": f"{number:024x}", "name": f"category {number}", **parent}


def folder(tmp_path: Path, *templates: Any, categories: Any = None) -> str:
    """A folder of an operator with these templates."""
    path = tmp_path / "templates"
    path.mkdir()
    for number, each in enumerate(templates):
        (path / f"{number}.json").write_text(each if isinstance(each, str) else json.dumps(each))
    if categories is not None:
        (path / "categories.json").write_text(json.dumps(categories))
    return str(path)


# What comes with the server.


async def test_the_templates_of_the_package_are_shown_whole(server: Server) -> None:
    listed = await server.call("GET", PATH)
    assert (listed["totalCount"], listed["_type"], listed["sortField"]) == (2, "applicationTemplates", "name")
    assert [each["name"] for each in listed["items"]] == ["Cold stores", "Energy of a building"]
    for each in listed["items"]:
        assert each["readme"].startswith(f"# {each['name']}\n")
        assert each["_links"]["self"]["href"] == f"{PATH}/{each['templateId']}"
        assert await server.call("GET", f"{PATH}/{each['id']}") == each
        counted = [one for one in PACKAGE.templates[each["id"]].resources if isinstance(one, SHOWN)]
        assert sum(each["summary"].values()) == len(counted)
    assert not {"resources", "globals"} & listed["items"][0].keys()
    unknown = await server.call("GET", f"{PATH}/{'0' * 24}", status=404)
    assert unknown["message"] == f"There is no application template {'0' * 24}."


# Lists.


async def test_templates_are_sorted_filtered_and_chosen(start_server: StartServer, tmp_path: Path) -> None:
    own = folder(
        tmp_path,
        template(1, name="Bravo", keywords=["a", "b"], categoryIds=[f"{7:024x}"], authorName="ann"),
        template(2, name="alpha", keywords=["b", "c"], categoryIds=[f"{8:024x}"], authorName="Bob"),
        template(3, name="charlie", keywords=["a", "b", "c"], authorName="ann"),
        categories=[category(7), category(8, above=7), category(9)],
    )
    async with start_server(templates_dir=own) as server:

        async def names(query: str) -> list[str]:
            found = await server.call("GET", f"{PATH}?{query}")
            assert found["count"] == len(found["items"]) <= found["totalCount"]
            return [each["name"] for each in found["items"] if not each["id"].startswith("69")]

        assert await names("") == ["alpha", "Bravo", "charlie"]
        assert await names("sortDirection=desc") == ["charlie", "Bravo", "alpha"]
        for field in ("id", "creationDate", "lastUpdated"):
            assert await names(f"sortField={field}") == ["Bravo", "alpha", "charlie"]
        assert await names("perPage=1&page=1") == ["Bravo"]
        assert await names("filterField=name&filter=*R*") == ["Bravo", "charlie"]
        assert await names("filterField=authorName&filter=ANN") == ["Bravo", "charlie"]
        assert await names("keywords=b&keywords=c") == ["alpha", "charlie"]
        assert await names("keywords[0]=a&keywords[1]=b&keywords[2]=c") == ["charlie"]
        assert await names("keywords=d") == []
        assert await names(f"categoryId={7:024x}") == ["alpha", "Bravo"]
        assert await names(f"categoryId={8:024x}&keywords=b") == ["alpha"]
        assert await names(f"categoryId={'f' * 24}") == []
        chosen = await server.call("GET", f"{PATH}?keywords=b&categoryId={8:024x}")
        assert (chosen["keywords"], chosen["categoryId"]) == (["b"], f"{8:024x}")
        for query, field in (("categoryId=x", "categoryId"), ("keywords=a%20b", "keywords[0]")):
            assert (await server.call("GET", f"{PATH}?{query}", status=400))["message"].startswith(
                f"{field}: "
            )

        found = await server.call("GET", f"{PATH}/categories?baseId={7:024X}")
        assert [each["id"] for each in found["items"]] == [f"{7:024x}", f"{8:024x}"]
        assert (found["count"], found["totalCount"], found["baseId"]) == (2, 2, f"{7:024x}")
        assert found["items"][1]["parentId"] == f"{7:024x}"
        everything = await server.call("GET", f"{PATH}/categories?baseId=")
        assert everything["totalCount"] == 7
        assert (await server.call("GET", f"{PATH}/categories?baseId={'f' * 24}"))["items"] == []
        keywords = (await server.call("GET", f"{PATH}/keywords"))["keywords"]
        assert keywords == sorted({"a", "b", "c", *PACKAGE.unique_keywords})


async def test_only_tokens_of_users_read_templates(server: Server) -> None:
    application = await server.application()
    made = await server.call("POST", f"{application}/tokens", {"name": "t", "scope": ["all.Application"]})
    await server.call("GET", PATH, token=made["token"], status=403)
    reader = await server.call("POST", "/me/tokens", {"name": "t", "scope": ["applicationTemplates.get"]})
    await server.call("GET", PATH, token=reader["token"], status=200)
    await server.call("GET", f"{PATH}/keywords", token=reader["token"], status=403)


# What is refused at the start.

WRONG: list[tuple[list[Any], str]] = [
    (["{"], "Input data was truncated"),
    ([template(1) | {"colour": "red"}], "Object contains unknown field `colour`"),
    ([template(1, name="")], "Expected `str` of length >= 1 - at `$.name`"),
    ([template(1, id="F" * 24)], "Expected `str` matching regex"),
    ([template(1), template(1)], f"has the id {1:024x}, which another one has"),
    ([template(1, creationDate="yesterday")], "time: "),
    ([template(1, categoryIds=["f" * 24])], f"there is no category {'f' * 24}"),
    (
        [template(1, resources=[{"type": "pump", "body": {}}])],
        "Invalid value 'pump' - at `$.resources[0].type`",
    ),
    ([template(1, resources=[{"type": "device", "body": {}}])], "Object missing required field `name`"),
    (
        [template(1, resources=[{"type": "device", "body": {"name": "a", "gatewayId": "A" * 24}}])],
        f"resources[0] names {'A' * 24}, which no resource has",
    ),
    (
        [template(1, resources=[{"type": "device", "id": "a" * 24, "body": {"name": "a"}}] * 2)],
        f"resources[1] has the id {'a' * 24}, which another one has already",
    ),
    ([template(1, description="x" * 1025)], "Expected `str` of length <= 1024"),
    ([template(1) | {"description": " " * 200_000}], "it has more than 131072 bytes"),
    ([template(1, keywords=[f"k{n}" for n in range(93)])], "brings more than 100 keywords"),
]


@pytest.mark.parametrize(("templates", "reason"), WRONG)
def test_a_template_that_does_not_fit_refuses_the_start(
    tmp_path: Path, templates: list[Any], reason: str
) -> None:
    with pytest.raises(SettingsError) as refusal:
        load_catalogue(folder(tmp_path, *templates), Limits())
    said = str(refusal.value)
    assert said.startswith(
        f"templates_dir has the file {tmp_path}/templates/{len(templates) - 1}.json, which"
    )
    assert reason in said


def test_a_folder_that_is_none_refuses_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, reason in (("nope", "No such file or directory"), ("file", "Not a directory")):
        with pytest.raises(SettingsError) as refusal:
            load_catalogue(str(tmp_path / name), Limits())
        said = f"templates_dir is {tmp_path / name}, which cannot be read: {reason}; give a folder with templates"
        assert str(refusal.value) == said


def test_categories_that_do_not_fit_refuse_the_start(tmp_path: Path) -> None:
    for name, categories in (
        ("twice", [category(1), category(1)]),
        ("below", [category(2, above=1), category(1)]),
    ):
        place = tmp_path / name
        place.mkdir()
        with pytest.raises(SettingsError, match=r"categories\.json, which does not fit: the category"):
            load_catalogue(folder(place, categories=categories), Limits())
    with pytest.raises(SettingsError, match="No such file or directory"):
        load_catalogue(str(tmp_path / "missing"), Limits())


def test_the_template_of_the_documentation_fits(checkout: Path, tmp_path: Path) -> None:
    text = (checkout / "docs/guides/applications.md").read_text()
    blocks = re.findall(r"^```json\n(.*?)^```$", text, re.M | re.S)
    (shown,) = [each for each in blocks if '"resources"' in each]
    catalogue: Catalogue = load_catalogue(folder(tmp_path, shown), Limits())
    assert len(catalogue.templates) == 3
