"""The words of messages to people: in texts of the rooms, in pages of the console, and in the documents."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path, PurePosixPath
from typing import Final

import pytest

OTHERWISE: Final = {
    r"(?<!there )\bis no (?!longer\b|of the\b)": "is not a valid ... (or: is not a ...)",
    r"\b(stands|occurs|there)( in the list)? twice\b": "appears twice",
    r"\banew\b": "again",
    r"\bis (the|its) bound\b": "limit",
    r"\bsign(s|ed)? (in|out)\b": "log in, log out",
    r"(?<![/\w#\[(-])log-(in|out)s?\b(?! page| form| flow)": "login, logout (noun); log in, log out (verb)",
}
"""What a message does not say, and what it says instead."""

PAGES_OF_EXPERIENCES: Final = PurePosixPath("actors/presentation/experience/bootstrap.py")
"""Gives pages and endpoints the name `log-in`."""


def texts(checkout: Path, file: PurePosixPath) -> str:
    """The texts of a module without its docstrings, a line each."""
    tokens = tokenize.generate_tokens(io.StringIO((checkout / file).read_text("utf-8")).readline)
    strings = (token.string for token in tokens if token.type == tokenize.STRING)
    return "\n".join(each for each in strings if '"""' not in each)


def said_otherwise(text: str) -> list[str]:
    """The lines of a text that have a word which messages do not use, with the right one."""
    return [
        f"{line.strip()[:150]} -> {right}"
        for line in text.splitlines()
        for wrong, right in OTHERWISE.items()
        if re.search(wrong, line, re.I)
    ]


def test_messages_of_the_server_use_the_words_of_all_others(
    checkout: Path, python_files: list[PurePosixPath], rooms: tuple[str, ...]
) -> None:
    found = {
        str(file): wrong
        for file in python_files
        if file.parts[0] in rooms and file != PAGES_OF_EXPERIENCES
        if (wrong := said_otherwise(texts(checkout, file)))
    }
    assert found == {}


@pytest.mark.parametrize("spelling", list(OTHERWISE)[-2:])
def test_the_console_and_the_documents_spell_login_alike(
    checkout: Path, project_files: list[PurePosixPath], spelling: str
) -> None:
    files = [
        file
        for file in project_files
        if file.suffix in (".js", ".md", ".html") and file.parts[0] in ("http", "docs", "README.md")
    ]
    assert {
        f"{file}: {found[0]}"
        for file in files
        if (found := re.search(spelling, (checkout / file).read_text("utf-8"), re.I))
    } == set()
