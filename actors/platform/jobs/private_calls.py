"""Which calls of this server may go to addresses that are not public.

An operator may allow private networks. What this server itself gives to everybody, its public files and its webhooks,
may be called in any case: on a server for one house or one machine, applications name these by a private address.
"""

from __future__ import annotations

from trunkline.actors.core.outgoing.http_calls import is_given_here
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.actors.platform.jobs.results import Results


def may_be_private(system: Host, url: str) -> bool:
    """Whether the address of a URL may be one that is not public."""
    if system.component(JobQueue).calls_private_networks:
        return True
    return is_given_here(url, system.component(Results).base_url)
