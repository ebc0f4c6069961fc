"""The CPU cores of a server and of the load generator, if the bench starts both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from trunkline.bench.errors import BenchError


class Cores(NamedTuple):
    """The cores of the server's programs and those of the generator; None if both may run on any core."""

    server: frozenset[int] | None
    generator: frozenset[int] | None

    @classmethod
    def split(cls, server_cores: int) -> Cores:
        """The first ``server_cores`` cores for the server, the others for the generator.

        0: no pinning. Raises BenchError if none is left for the generator.
        """
        allowed = sorted(os.sched_getaffinity(0))
        if server_cores == 0:
            return cls(None, None)
        if server_cores >= len(allowed):
            raise BenchError(
                f"--server-cores {server_cores} leaves none of the {len(allowed)} cores to the load generator; "
                "with 0 nothing is pinned."
            )
        return cls(frozenset(allowed[:server_cores]), frozenset(allowed[server_cores:]))


@contextmanager
def on_cores(cores: frozenset[int] | None) -> Iterator[None]:
    """Pin this thread, and the programs that it starts, to these cores."""
    if cores is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
