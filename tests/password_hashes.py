"""What a hash of a password costs in tests: as little as possible, because hashing would dominate them.

A hash as the server makes it takes as long as a hundred calls. `full_hashes` (tests/conftest.py) keeps its cost.
"""

from __future__ import annotations

from typing import Final

import argon2

CHEAP: Final = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""The cost is part of a hash, so it must not differ between the hasher of a password and that of its check."""


def hash_cheaply() -> None:
    """Let the servers of this process hash at the lowest cost."""
    from trunkline.actors.people.accounts import passwords

    passwords._hasher = CHEAP
