"""Secrets that are handed out as texts: in answers, in CSV, on command lines.

Owns their form. Each begins with a letter or a digit: a text that begins with `-` is an option to programs, and would
run as a formula in a spreadsheet, so CSV guards it with a sign that is not part of the secret.
"""

from __future__ import annotations

import secrets


def new_secret(random_bytes: int) -> str:
    """A new secret of letters, digits, `-` and `_`, four for each three bytes."""
    while True:
        text = secrets.token_urlsafe(random_bytes)
        if text[0].isalnum():
            return text
