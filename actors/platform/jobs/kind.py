"""The kind of job records, and who owns them."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.kind import HISTORY, Kind
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.people.organizations.membership import ORGANIZATION

JOB: Final = Kind(
    name="job", noun="job", home="owner", indexes=(), counted_as=None, audited_as=None, not_portable=HISTORY
)

OWNERS: Final = {APPLICATION: "application", USER: "userJobs", ORGANIZATION: "userJobs"}
"""The kinds of records that are parents of jobs, and the kinds of the actors that own these jobs."""
