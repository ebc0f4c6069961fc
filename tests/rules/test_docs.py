"""The documentation agrees with the code: everything with a name is documented, and everything documented exists.

The generated tables (`doc_tables.py`) in the documents must be up to date. The other tests check the parts that are
written by hand: commands, variables, calls, paths and links.
"""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import quote, unquote

import pytest
import typer

from tests.console.pictures import shown
from tests.rules import doc_tables, operator_tables
from tests.rules.markdown import anchor
from trunkline.actors.core.query.compile import LOGICAL, compile_query
from trunkline.actors.core.query.conditions import ID_OPERATORS, OPERATORS
from trunkline.actors.fleet.devices.record.messages import DevicePage
from trunkline.actors.fleet.devices.record.terms import DEVICE_FIELDS
from trunkline.http.calls.errors import ENGINE_STATUS, STATUS
from trunkline.http.calls.query_string import QueryParser
from trunkline.http.cli.main import app
from trunkline.http.routes import TABLE
from trunkline.limits.settings import CONFIG_VARIABLE, ENV_PREFIX, TABLES, Settings, service_variables
from trunkline.limits.table import Limits

README: Final = "README.md"
ARCHITECTURE: Final = "docs/architecture.md"
REFERENCE: Final = "docs/reference"
QUERY: Final = "docs/reference/query.md"

TRY_IT: Final = "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/trunkline serve --demo"
TEST_IT: Final = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && .venv/bin/pytest"

REWRITE: Final = "write the tables anew: .venv/bin/python -m tests.rules.doc_tables"


@pytest.fixture(scope="module")
def documents(checkout: Path, project_files: list[PurePosixPath]) -> dict[str, str]:
    """Every document by its path in the checkout. Texts in the rooms are contents of the server."""
    rooms = ("actors", "http")
    names = [str(file) for file in project_files if file.suffix == ".md" and file.parts[0] not in rooms]
    return {name: (checkout / name).read_text(encoding="utf-8") for name in names}


# Generated tables.


@pytest.mark.parametrize(
    ("document", "name"), [(document, name) for document, made in doc_tables.BLOCKS.items() for name in made]
)
def test_a_generated_table_is_up_to_date(documents: dict[str, str], document: str, name: str) -> None:
    text, block = documents[document], doc_tables.BLOCKS[document][name]()
    missing = [line for line in block.splitlines() if line not in text.splitlines()]
    assert not missing, f"{document} lacks these lines of {name}; {REWRITE}\n" + "\n".join(missing)
    assert doc_tables.place(text, name, block) == text, f"{document}: {name} has lines of old; {REWRITE}"


# Everything with a name is documented. These tests search for the name only, in any layout of the tables.


def undocumented(text: str, names: Iterator[str]) -> list[str]:
    return [name for name in names if f"`{name}`" not in text]


def test_every_route_is_documented(documents: dict[str, str]) -> None:
    names = (name for route in TABLE.routes for name in (route.operation, route.path))
    assert undocumented(documents[f"{REFERENCE}/operations.md"], names) == []


def test_every_command_and_option_is_documented(documents: dict[str, str]) -> None:
    text = documents[f"{REFERENCE}/commands.md"]
    lacking = []
    for path, command in operator_tables.command_tree():
        section = text.partition(f"## `{path}")[2].partition("\n## ")[0]
        lacking += [
            f"{path} {name}" for name in options_of(command) if not re.search(rf"[`/]{name}\b", section)
        ]
        lacking += [] if section else [path]
    assert lacking == []


def test_every_setting_is_documented(documents: dict[str, str]) -> None:
    names = [name for name in Settings.__dataclass_fields__ if name not in TABLES]
    both = (given for name in names for given in (name, ENV_PREFIX + name.upper()))
    assert undocumented(documents[f"{REFERENCE}/settings.md"], both) == []


def test_every_limit_is_documented(documents: dict[str, str]) -> None:
    assert undocumented(documents[f"{REFERENCE}/limits.md"], iter(Limits.__dataclass_fields__)) == []


def test_every_metric_is_documented(documents: dict[str, str]) -> None:
    names = (name for name, _, _ in operator_tables.metrics_of_a_server())
    assert undocumented(documents[f"{REFERENCE}/metrics.md"], names) == []


def test_the_error_table_is_that_of_the_code(documents: dict[str, str]) -> None:
    section = documents[f"{REFERENCE}/errors.md"]
    found = {type: int(status) for status, type in re.findall(r"^\| (\d{3}) \| `(\w+)` \|", section, re.M)}
    assert found == STATUS | ENGINE_STATUS


def test_the_operators_of_the_query_are_those_of_the_code(documents: dict[str, str]) -> None:
    """Each operator is in a table of the grammar, and nothing else is."""
    grammar = documents[QUERY].partition("\n## The grammar\n")[2].partition("\n## ")[0]
    first_cells = "".join(re.findall(r"^\| ([^|]*`\$[^|]*) \|", grammar, re.M))
    assert sorted(re.findall(r"`(\$\w+)`", first_cells)) == sorted(
        [*LOGICAL, *OPERATORS, "$ci", "$tagKey", "$tagValue"]
    )
    of_ids = re.search(r"exactly one of (.*?)\. ", grammar)
    assert of_ids is not None
    assert sorted(re.findall(r"`(\$\w+)`", of_ids[1])) == sorted(ID_OPERATORS)


def test_the_examples_of_the_query_are_taken_in_both_forms(documents: dict[str, str]) -> None:
    text = documents[QUERY]
    examples = re.findall(r"\| `(\{[^`]*\})` \|", text) + re.findall(
        r"^```json\n(.*?)^```$", text, re.M | re.S
    )
    assert len(examples) >= 17
    for example in map(json.loads, examples):
        of_tags = example.keys() & {"$tagKey", "room"}
        compile_query({"tags": example} if of_tags else example, DEVICE_FIELDS)
    parser = QueryParser(DevicePage)
    in_urls = [found.replace("&amp;", "&") for found in re.findall(r"`(query[\[=][^`]*)`", text)]
    assert len(in_urls) >= 8
    for example in in_urls:
        found, _ = parser.parse(quote(example, safe="=&[]$").encode())
        compile_query(found.query, DEVICE_FIELDS)


def test_the_bounds_of_the_query_are_those_of_the_code(documents: dict[str, str]) -> None:
    bounds = inspect.signature(compile_query).parameters
    text = documents[QUERY].partition("\n## Limits and errors\n")[2]
    for name, sentence in (
        ("items_max", "at most {} items"),
        ("tag_chars_max", "at most {} characters"),
        ("depth_max", "at most {} deep"),
        ("conditions_max", "at most {} conditions"),
    ):
        assert sentence.format(bounds[name].default) in text


# Everything documented exists.


def test_every_setting_is_read_by_somebody() -> None:
    """`throttles` is read where the settings are: it changes the limits."""
    assert operator_tables.unread_settings() - {"throttles"} == set()


def test_every_limit_takes_effect() -> None:
    assert operator_tables.unread_limits() == set()


def test_the_first_two_blocks_of_the_readme_are_the_two_commands(documents: dict[str, str]) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", documents[README], re.M | re.S)
    assert [block.strip() for block in blocks] == [TRY_IT, TEST_IT]
    first = re.findall(r"^```(\w*)$", documents[README], re.M)[:4]
    assert first == ["sh", "", "sh", ""], "no other block stands before them"


def test_every_command_that_is_named_exists(documents: dict[str, str]) -> None:
    known = {"trunkline": typer.main.get_command(app), **dict(operator_tables.command_tree())}
    unknown = []
    for document, call in calls_of_the_command_line(documents):
        path, *rest = call.split()
        while (
            rest
            and any(name.startswith(f"{path} {rest[0]}") for name in known)
            and rest[0].replace("-", "").isalpha()
        ):
            path = f"{path} {rest.pop(0)}"
        if not rest and any(name.startswith(f"{path} ") for name in known):
            continue  # a group of commands, named as such
        command = known.get(path)
        options = [] if command is None else options_of(command)
        given = [word.partition("=")[0] for word in rest if word.startswith("--")]
        if command is None or not set(given) <= {*options, "--help"}:
            unknown.append(f"{document}: {call}")
    assert unknown == []


def test_every_variable_that_is_named_exists(documents: dict[str, str]) -> None:
    known = {ENV_PREFIX + name.upper() for name in Settings.__dataclass_fields__} | {CONFIG_VARIABLE}
    known |= {
        param.envvar
        for _, command in operator_tables.command_tree()
        for param in command.params
        if param.envvar
    }
    named = {
        (document, name)
        for document, text in documents.items()
        for name in re.findall(rf"\b{ENV_PREFIX}[A-Z_]+\b", text)
    }
    announced = service_variables(dict.fromkeys((name for _, name in named), ""))
    assert {each for each in named if each[1] not in known.union(announced)} == set()


def test_every_call_of_the_readme_is_a_route(documents: dict[str, str]) -> None:
    calls = re.findall(r"^.*curl .*$", documents[README], re.M)
    assert len(calls) >= 3
    for call in calls:
        found = re.search(r"\$URL(/[^\s?\"')|]+)", call)
        assert found is not None, call
        path = re.sub(r"\$[A-Z]+", "0" * 24, found[1])
        rows = TABLE.match(path)
        method = "POST" if " -d " in call else "GET"
        assert rows is not None, call
        assert method in rows[0], call


def test_every_promise_names_its_tests(documents: dict[str, str], project_files: list[PurePosixPath]) -> None:
    section = documents[README].partition("\n## What it promises\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \*\*(.+?)\.\*\*.*\| (.*) \|$", section, re.M)
    assert [name for name, _ in rows] == re.findall(r"^\d\. \*\*(.+?)\.\*\*", documents[ARCHITECTURE], re.M)
    for name, tests in rows:
        files = re.findall(r"`(tests/[^`]+)`", tests)
        assert files, name
        assert [file for file in files if PurePosixPath(file) not in project_files] == [], name


def test_every_file_that_is_named_exists(
    checkout: Path, documents: dict[str, str], rooms: tuple[str, ...]
) -> None:
    tops = "|".join((*rooms, "tests", "docs", r"\.ci"))
    named = {
        (document, name)
        for document, text in documents.items()
        for name in re.findall(rf"(?<![\w/`.])`?((?:{tops})/[\w./-]*\w)", text)
    }
    missing = {each for each in named if not (checkout / each[1]).exists()}
    assert missing == set()


# Links.


def test_every_link_leads_somewhere(checkout: Path, documents: dict[str, str]) -> None:
    broken = []
    for document, text in documents.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(text)):
            if re.match(r"https?://", target):
                continue
            path, _, anchor = target.partition("#")
            file = (checkout / document).parent / unquote(path) if path else checkout / document
            if not file.exists() or (anchor and anchor not in anchors(file.read_text(encoding="utf-8"))):
                broken.append(f"{document}: {target}")
    assert broken == []


def test_the_repository_has_the_pictures_that_documents_show(checkout: Path) -> None:
    assert {file.name for file in (checkout / "docs/pictures").glob("*.webp")} == shown(), (
        "take the others with `python -m tests.console.pictures --all FOLDER`, or show them"
    )


def test_every_document_can_be_reached_from_the_readme(documents: dict[str, str]) -> None:
    linked = set(re.findall(r"\]\(([\w./-]+\.md)", documents[README]))
    assert set(documents) - linked == {README}


def test_every_section_is_two_clicks_from_the_readme(documents: dict[str, str]) -> None:
    """The README links to each document (above), and each document of several sections begins with links to all."""
    lacking = []
    for document, text in documents.items():
        contents, *sections = re.split(r"^## ", without_blocks(text), flags=re.M)
        titles = [section.partition("\n")[0] for section in sections]
        if document not in (README, "CHANGELOG.md") and len(titles) > 1:
            lacking += [f"{document}: {each}" for each in titles if f"](#{anchor(each)})" not in contents]
    assert lacking == [], "add them to the contents of the document"


# Style.


def test_no_line_speaks_of_somebodys_machine(documents: dict[str, str]) -> None:
    places = r"(?<![\w.}])(?:/(?:home|root|tmp|work|opt|mnt|Users|private)/|[A-Z]:\\)"
    found = [
        f"{document}:{number}: {line}"
        for document, text in documents.items()
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(places, line)
    ]
    assert found == []


def test_the_changelog_knows_the_version(checkout: Path, documents: dict[str, str]) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] in documents["CHANGELOG.md"]


# Reading the documents and the command line.


def options_of(command: Any) -> list[str]:
    """All options of a command, including those that disable something."""
    names = (name for param in command.params for name in (*param.opts, *param.secondary_opts))
    return [name for name in names if name.startswith("--")]


def calls_of_the_command_line(documents: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Every call of `trunkline` in a code block, with its document."""
    for document, text in documents.items():
        prose = without_blocks(text)
        blocks = "\n".join(re.findall(r"^```(?:sh|console)\n(.*?)^```$", text, re.M | re.S))
        for call in re.findall(r"`(trunkline [^`]+)`", prose) + re.findall(
            r"(?:^|[ /])(trunkline [a-z].*)$", blocks, re.M
        ):
            yield document, call


def without_blocks(text: str) -> str:
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def anchors(text: str) -> set[str]:
    """The anchors of a document's headings."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(text), re.M)
    return set(map(anchor, headings))
