"""The libraries of the console are those that `vendor.json` names, and a strict policy lets them run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.console.vendor import FILES, LIST, VENDOR

ENTRIES: list[dict[str, Any]] = json.loads(LIST.read_text())
MODULES = sorted(VENDOR.glob("*.mjs"))

FORBIDDEN = re.compile(
    r"\beval\(|\bFunction\(|\bimportScripts\b|\bdocument\.write|\bouterHTML\b|\binsertAdjacentHTML\b|\bimport\("
    r"|setAttribute\(.style.|sourceMappingURL"
)
"""What the policy refuses, or what fetches more than the page needs."""


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_a_library_is_as_it_is_listed(entry: dict[str, Any]) -> None:
    assert {each["file"] for each in entry["files"]} >= set(FILES[entry["name"]])
    for each in entry["files"]:
        assert hashlib.sha256((VENDOR / each["file"]).read_bytes()).hexdigest() == each["sha256"], each[
            "file"
        ]
    algorithm, _, digest = entry["integrity"].partition("-")
    assert algorithm == "sha512"
    assert len(base64.b64decode(digest)) == 64
    assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"])


def test_nothing_else_is_in_the_folder() -> None:
    listed = {each["file"] for entry in ENTRIES for each in entry["files"]}
    assert {file.name for file in VENDOR.iterdir()} == listed | {LIST.name}
    assert {entry["name"] for entry in ENTRIES} == set(FILES)


def test_every_library_has_its_licence() -> None:
    known = {"MIT": "Permission is hereby granted", "Apache-2.0": "Apache License"}
    for entry in ENTRIES:
        (licence,) = (each["file"] for each in entry["files"] if each["source"] == "LICENSE")
        assert known[entry["license"]] in (VENDOR / licence).read_text()


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.name)
def test_a_strict_policy_lets_a_library_run(file: Path) -> None:
    text = file.read_text()
    assert not FORBIDDEN.findall(text)
    for imported in re.findall(r'(?:from|import) ?"([^"]+)"', text):
        assert (VENDOR / imported).is_file(), imported


def test_only_dangerously_set_inner_html_assigns_html() -> None:
    """The policy of the console wants trusted types, so this property of Preact throws there; nothing else does."""
    assigned = {file.name: len(re.findall(r"\.innerHTML=", file.read_text())) for file in MODULES}
    assert {name: count for name, count in assigned.items() if count} == {"preact.mjs": 1}
