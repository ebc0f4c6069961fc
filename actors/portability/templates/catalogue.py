"""The catalogue of application templates: read from folders at the start, checked as a whole, and then only read.

The templates of the package come first; an operator may add a folder of templates (`templates_dir`), which may use
the categories of the package. A file that does not fit refuses the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET

from trunkline.actors.core.records.page import all_of, envelope, glob_match
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.timestamps import iso, parse_iso
from trunkline.actors.portability.bundles.reader import Memory
from trunkline.actors.portability.templates.form import (
    COUNTED,
    Category,
    Template,
    bundle_of,
    reference_problem,
)
from trunkline.actors.portability.templates.messages import CategoryChoice, TemplatePage
from trunkline.limits.errors import SettingsError
from trunkline.limits.table import Limits
from trunkline.store import keys

_KEYWORDS_MAX: Final = 100
"""Keywords of all templates together."""
_PACKAGE: Final = Path(__file__).with_name("library")
_CATEGORIES: Final = "categories.json"

Doc = dict[str, Any]
T = TypeVar("T")


class Catalogue:
    """Templates by id, and categories in the order of their files. It never changes."""

    def __init__(
        self, templates: Mapping[str, Template], readmes: Mapping[str, str], categories: Sequence[Category]
    ) -> None:
        self.templates = templates
        self._readmes = readmes
        self._categories = [_show_category(category) for category in categories]
        self._shown = {id: _show(template, readmes[id]) for id, template in templates.items()}
        self.unique_keywords = sorted({each for doc in self._shown.values() for each in doc["keywords"]})

    def list_templates(self, query: TemplatePage) -> Doc:
        """A page of templates."""
        matches = glob_match(query, query.filter_field)
        if query.keywords:
            wanted = frozenset(query.keywords)
            matches.append(lambda doc: wanted <= set(doc["keywords"]))
        if query.category_id is not None:
            inside = {each["id"] for each in self._from(query.category_id)}
            matches.append(lambda doc: not inside.isdisjoint(doc["categoryIds"]))
        match = all_of(matches)
        found = sorted(
            (doc for doc in self._shown.values() if match is None or match(doc)),
            key=lambda doc: (keys.sortable(doc[query.sort_field]), doc["id"]),
            reverse=query.sort_direction == "desc",
        )
        skip = query.page * query.per_page
        items = [{**doc} for doc in found[skip : skip + query.per_page]]
        shown = envelope("applicationTemplates", items, len(found), query)
        for name, value in (("keywords", query.keywords), ("categoryId", query.category_id)):
            if value:
                shown[name] = value
        return shown

    def get(self, id: bytes) -> Doc:
        """One template. Raises `NotFound`."""
        found = self._shown.get(id.hex())
        if found is None:
            raise NotFound(f"There is no application template {id.hex()}.")
        return {**found}

    def bundle(self, id: str, *, without: AbstractSet[str] = frozenset()) -> Memory:
        """The bundle of what a template creates, without the globals of these keys. Raises `NotFound`."""
        self.get(bytes.fromhex(id))
        return bundle_of(self.templates[id], without=without)

    def readme(self, id: str) -> str:
        """The readme of a template; empty if it has none."""
        return self._readmes[id]

    def list_categories(self, query: CategoryChoice) -> Doc:
        """All categories, or one with those below it; none if there is no such category."""
        base = query.base_id
        items = self._categories if base is None else self._from(base)
        shown: Doc = {} if base is None else {"baseId": base}
        return {"items": items, "count": len(items), "totalCount": len(items), **shown}

    def _from(self, base_id: str) -> list[Doc]:
        """A category and all below it. Those above come first, so one pass finds them all."""
        inside: dict[str, Doc] = {}
        for each in self._categories:
            if each["id"] == base_id.lower() or each.get("parentId") in inside:
                inside[each["id"]] = each
        return list(inside.values())


def _show(template: Template, readme: str) -> Doc:
    return {
        "id": template.id,
        "templateId": template.id,
        "creationDate": iso(parse_iso(template.creation_date)),
        "lastUpdated": iso(parse_iso(template.last_updated)),
        "name": template.name,
        "description": template.description,
        "readme": readme,
        "authorName": template.author_name,
        **_given(
            authorUrl=template.author_url, imageUrl=template.image_url, templateUrl=template.template_url
        ),
        "public": template.public,
        "keywords": template.keywords,
        "categoryIds": template.category_ids,
        "summary": {
            field: sum(isinstance(resource, type) for resource in template.resources)
            for field, type in COUNTED.items()
        },
        "_type": "applicationTemplate",
    }


def _show_category(category: Category) -> Doc:
    return {
        "id": category.id,
        "name": category.name,
        **_given(parentId=category.parent_id, description=category.description),
        "resourceTypes": category.resource_types,
    }


def _given(**fields: Any) -> Doc:
    return {name: value for name, value in fields.items() if value is not UNSET}


# Reading.


class _Problem(Exception):
    """What is wrong with a file."""


def load_catalogue(own: str | None, limits: Limits) -> Catalogue:
    """The templates of the package, and those of the folder `own`. Raises `SettingsError` for what does not fit."""
    folders = [_PACKAGE]
    if own is not None:
        folders.append(_readable(Path(own)))
    categories: list[Category] = []
    templates: dict[str, Template] = {}
    readmes: dict[str, str] = {}
    file = folders[-1]
    try:
        for folder in folders:
            file = folder / _CATEGORIES
            if folder is _PACKAGE or file.exists():
                categories += _read(file, list[Category], limits)
                _check_categories(categories)
        known = {category.id for category in categories}
        for file in _template_files(folders):
            template = _read(file, Template, limits)
            _check(template, known)
            if template.id in templates or len(templates) == limits.templates_max:
                raise _Problem(
                    f"has the id {template.id}, which another one has"
                    if template.id in templates
                    else f"is the one after {limits.templates_max}, which is the limit"
                )
            templates[template.id] = template
            readme = file.with_suffix(".md")
            readmes[template.id] = _text(readme, limits).decode() if readme.exists() else ""
        catalogue = Catalogue(templates, readmes, categories)
        if len(catalogue.unique_keywords) > _KEYWORDS_MAX:
            raise _Problem(f"brings more than {_KEYWORDS_MAX} keywords, which is the limit")
    except (_Problem, OSError, UnicodeDecodeError, msgspec.MsgspecError, Invalid) as problem:
        raise SettingsError(
            "templates_dir",
            f"has the file {file}, which does not fit: {problem}",
            "correct it or take it away",
        ) from None
    return catalogue


def _readable(folder: Path) -> Path:
    try:
        next(folder.iterdir(), None)
    except OSError as error:
        raise SettingsError(
            "templates_dir",
            f"is {folder}, which cannot be read: {error.strerror}",
            "give a folder with templates",
        ) from None
    return folder


def _template_files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        for name in sorted(path.name for path in folder.iterdir()):
            if name.endswith(".json") and name != _CATEGORIES:
                yield folder / name


def _read(file: Path, type: type[T], limits: Limits) -> T:
    return msgspec.json.decode(_text(file, limits), type=type)


def _text(file: Path, limits: Limits) -> bytes:
    with file.open("rb") as opened:
        text = opened.read(limits.template_bytes_max + 1)
    if len(text) > limits.template_bytes_max:
        raise _Problem(f"it has more than {limits.template_bytes_max} bytes")
    return text


def _check(template: Template, categories: set[str]) -> None:
    for time in (template.creation_date, template.last_updated):
        parse_iso(time)
    for id in template.category_ids:
        if id not in categories:
            raise _Problem(f"there is no category {id}")
    problem = reference_problem(template)
    if problem is not None:
        raise _Problem(problem)


def _check_categories(categories: Sequence[Category]) -> None:
    known: set[str] = set()
    for category in categories:
        if category.id in known:
            raise _Problem(f"the category {category.id} appears twice")
        if category.parent_id is not UNSET and category.parent_id not in known:
            raise _Problem(
                f"the category {category.id} is below {category.parent_id}, which no category before it is"
            )
        known.add(category.id)
