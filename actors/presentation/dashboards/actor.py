"""The actor that owns the jobs of a user or an organization: the reports of dashboards that belong to no application.

It is separate from the actor of the user because jobs are a layer above accounts.
"""

from __future__ import annotations

from typing import ClassVar

from trunkline.actors.core.records.kinds import USER
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.organizations.membership import ORGANIZATION
from trunkline.actors.platform.jobs.owner import JobOwner
from trunkline.store import keys


class UserJobs(JobOwner):
    """The jobs of one user or organization. `ref.parent` is `ids.ROOT`, `ref.id` the id of the owner.

    It keeps no state in memory.
    """

    kind: ClassVar[str] = "userJobs"
    noun: ClassVar[str] = "user or organization"

    __slots__ = ()

    def load(self) -> bool:
        owners = (keys.record_key(kind.name, ROOT, self.ref.id) for kind in (USER, ORGANIZATION))
        return any(self.system.journal.get(keys.RECORDS, key) is not None for key in owners)
