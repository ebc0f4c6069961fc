"""What organizations add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.people.organizations import invitations, reads
from trunkline.actors.people.organizations.actor import Organization
from trunkline.actors.people.organizations.membership import MEMBER, MEMBERSHIP, ORGANIZATION
from trunkline.actors.people.organizations.messages import GetAccess, GetOrg, ListOrgs

FEATURE: Final = Feature(
    kinds=(ORGANIZATION, MEMBER, MEMBERSHIP, invitations.INVITE, invitations.INVITED),
    actors=(Organization,),
    readers={
        invitations.ListInvites: invitations.list_invites,
        invitations.ListMyInvites: invitations.list_my_invites,
        invitations.GetMyInvite: invitations.get_my_invite,
        invitations.GetInvite: invitations.get_invite,
        invitations.FindInvite: invitations.find_invite,
        GetAccess: reads.get_access,
    },
    counted_readers={GetOrg: reads.get_org, ListOrgs: reads.list_orgs},
)
