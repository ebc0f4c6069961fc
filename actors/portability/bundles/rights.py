"""What an import needs beside the right to import: the rights to create and to change what is above it.

Who may import writes whatever a bundle has, as the operations of the API do that need a role with `Level.WRITE`. What
these need more for (certificate authorities) an import refuses to whoever may not do it in the application. New
applications are made by those who have every such level in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunkline.actors.core.values.errors import Forbidden
from trunkline.actors.people.organizations.mandates import Authors
from trunkline.actors.people.organizations.roles import Level, level_of
from trunkline.actors.portability.bundles.portable import PORTABLE

if TYPE_CHECKING:
    from trunkline.actors.platform.jobs.job import Job

ABOVE: Final = tuple(
    operation
    for operation in dict.fromkeys(name for each in PORTABLE for name in (each.created_by, each.changed_by))
    if level_of(operation, "write") > Level.WRITE
)
"""The operations of portable resources that need a higher level than an import."""


def refusals_of(job: Job) -> dict[str, str]:
    """The operations of `ABOVE` that who asked for the job may not perform in its application, each with the reason."""
    authors, found = job.system.component(Authors), {}
    for operation in ABOVE:
        try:
            authors.check(job.application, job.by.mandates, operation, "write")
        except Forbidden as refusal:
            found[operation] = refusal.message
    return found
