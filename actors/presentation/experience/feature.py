"""What experiences add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.presentation.experience.access import MayUseDevice, may_use_device
from trunkline.actors.presentation.experience.actor import Experience
from trunkline.actors.presentation.experience.counts import RequestCounts
from trunkline.actors.presentation.experience.domain_names import DomainNames
from trunkline.actors.presentation.experience.domains import DOMAINS
from trunkline.actors.presentation.experience.endpoints import ENDPOINTS
from trunkline.actors.presentation.experience.groups import GROUPS
from trunkline.actors.presentation.experience.kind import DEVELOP, ENDPOINT_COPY, VIEW_COPY
from trunkline.actors.presentation.experience.linked import GetExperienceLinks, get_linked
from trunkline.actors.presentation.experience.portable import EXPERIENCE
from trunkline.actors.presentation.experience.requests import EndpointRequests
from trunkline.actors.presentation.experience.sites import Sites
from trunkline.actors.presentation.experience.slugs import SLUGS
from trunkline.actors.presentation.experience.stats import GetEndpointStats, get_stats
from trunkline.actors.presentation.experience.tokens import ExperienceTokens
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS
from trunkline.actors.presentation.experience.versions import VERSIONS
from trunkline.actors.presentation.experience.views import VIEWS


def _parts(start: Start) -> Iterator[object]:
    yield ExperienceTokens(start.secret)
    yield Sites(start.system, start.settings.experience_suffix)
    yield DomainNames(start.settings)
    yield RequestCounts(start.system)


FEATURE: Final = Feature(
    parts=_parts,
    tasks=(RequestCounts,),
    stops=(RequestCounts,),
    moved=(RequestCounts,),
    kinds=(DEVELOP, ENDPOINT_COPY, VIEW_COPY),
    resources=(ENDPOINTS, VIEWS, VERSIONS, DOMAINS, SLUGS, GROUPS, EXPERIENCE_USERS),
    actors=(Experience, EndpointRequests),
    readers={
        GetEndpointStats: get_stats,
        MayUseDevice: may_use_device,
    },
    portable=EXPERIENCE,
    resource_readers={GetExperienceLinks: get_linked},
)
