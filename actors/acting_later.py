"""Everything that acts later, when who set it up is not there: in whose name, and how that right ends.

This is the one list of it; the documents show it, and a test takes each right away and sees that nothing acts any more.
What is added to the server and acts later gets a row here.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Acting(NamedTuple):
    """What acts, in whose name, and how the right ends."""

    what: str
    acts_for: str
    ends: str


_AUTHOR_ENDS: Final = (
    "With the membership, the role or the account of the author, with the token that was used, and with a transfer "
    "to an owner that the author does not belong to. Somebody who has the right saves it again."
)
_JOB_ENDS: Final = "The same, also while the job works: it ends as `errored` within two seconds, where it is."

ACTING: Final = (
    Acting(
        "Workflows, custom nodes and their versions, also when timers, webhooks, endpoints or buttons start them",
        "Who last wrote, enabled or deployed them, also for what triggers tell them. A custom node also needs the "
        "rights of its own author.",
        _AUTHOR_ENDS,
    ),
    Acting("`LosantApiNode` with `apiTokenTemplate`", "The bearer of that token", "With the token."),
    Acting("Dry runs of workflows", "Who asks for them", "They end with their call."),
    Acting(
        "Dashboards of users and organizations that are read without a token",
        "Who last wrote their blocks or parameters, or made them public; and their owner",
        _AUTHOR_ENDS,
    ),
    Acting("Reports of dashboards", "Who asks for them", _JOB_ENDS),
    Acting("Jobs: exports, bulk changes, deletions, deployments", "Who queued them", _JOB_ENDS),
    Acting(
        "Imports, clones, application templates",
        "Who asks for them; what they make has this author",
        _JOB_ENDS + " A clone also needs that its source can still be read.",
    ),
    Acting(
        "The deletion of what a deleted directory holds", "The server", "It does not: the directory is gone."
    ),
    Acting(
        "Webhooks, experience endpoints",
        "Nobody: who has the address starts workflows, which act for their authors",
        "When they are deleted.",
    ),
    Acting(
        "Streams of topics with which endpoints of experiences answer",
        "The visitor, whom a workflow gave the topics",
        "With the endpoint, the token and the access of the visitor, and after an hour: the workflow decides again.",
    ),
    Acting(
        "Integrations and archives",
        "The application: what its configuration says, which those who may change it see",
        "When they are disabled or deleted, or with the application.",
    ),
    Acting(
        "Notices of alarms, by mail and by calls",
        "The application: what its alarm rules say, which those who may change it see",
        "When the rule is disabled or deleted or tells nobody any more, or with the application. A user whom a rule or "
        "a group names is told as long as that user may read the application.",
    ),
    Acting(
        "Access keys, certificates and API tokens",
        "Themselves, with their scopes and filters; those of users have the roles of the user",
        "When they are inactive, deleted or expired; those of users also with the password or the account.",
    ),
    Acting(
        "Wills and sessions of MQTT clients",
        "The access key, certificate or token with which the client has connected",
        "With the key or certificate: a will is dropped then, and what waits in a session is only for a client that "
        "logs in and may subscribe to it. A will that was left with a token is published.",
    ),
    Acting(
        "Experience users and their tokens",
        "The experience user",
        "With the user, with `tokenCutoff` of the user or `expUserTokenCutoff` of the application, and after their "
        "time. A new password alone does not end them.",
    ),
    Acting(
        "Invitations",
        "The organization: whoever has the mail and the address",
        "When they are revoked, replaced, answered or a week old.",
    ),
    Acting(
        "Links to results and private files",
        "Whoever has the link",
        "When they expire or what they name is gone.",
    ),
    Acting("Transfers", "Who asks for them: they are done in the call", "They end with their call."),
)
