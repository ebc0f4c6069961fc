"""How many descriptors this process may have."""

from __future__ import annotations

import errno
import resource

DESCRIPTORS_BESIDE = 256
"""Descriptors that are not connections: the store, listening sockets, threads, files being written."""
NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""The errors of a process or a machine that has none left."""


def allow_descriptors(connections_max: int) -> int:
    """Raise this process's soft limit of descriptors so that it may have so many connections.

    The usual 1,024 is far too low for a server. Returns how many descriptors it may have now, which is less than
    wanted where the hard limit is lower.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections_max + DESCRIPTORS_BESIDE
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
