"""The workflow that logs in the users of a first experience: it checks the form, and sets the cookie with the token."""

from __future__ import annotations

from typing import Any, Final

LIFE_MS: Final = 7 * 86_400_000
"""How long a token and its cookie last."""

_WRONG: Final = "The e-mail address or the password is wrong."


def log_in_flow(*, name: str, endpoint: str, page: str, home: str) -> dict[str, Any]:
    """The body of the workflow that answers `endpoint`: with the page for logging in, or with the way home."""
    return {
        "name": name,
        "flowClass": "experience",
        "description": "Logs in the users of the experience.",
        "triggers": [
            {
                "type": "endpoint",
                "key": endpoint,
                "meta": {"category": "trigger", "name": "endpoint", "label": "Log in", "x": 200, "y": 40},
                "outputIds": [["check"]],
            }
        ],
        "nodes": [
            {
                "id": "check",
                "type": "ExperienceUserAuthNode",
                "config": {
                    "emailTemplate": "{{data.body.email}}",
                    "passwordTemplate": "{{data.body.password}}",
                    "ttlTemplate": str(LIFE_MS),
                    "tokenResultPath": "working.token",
                },
                "meta": {
                    "category": "experience",
                    "name": "experience-user-auth",
                    "label": "Authenticate",
                    "authMode": "emailPassword",
                    "x": 200,
                    "y": 140,
                },
                "outputIds": [["again"], ["home"]],
            },
            _reply(
                "again",
                "Show the page again",
                100,
                replyType="page",
                responseCodeTemplate="401",
                pageIdTemplate=page,
                bodyTemplateType="json",
                bodyTemplate=f'{{"error": "{_WRONG}"}}',
            ),
            _reply(
                "home",
                "Set the cookie",
                300,
                replyType="redirect",
                responseCodeTemplate="302",
                bodyTemplate=home,
                sameSiteTemplate="lax",
                cookieInfo=[
                    {
                        "nameTemplate": "authorization",
                        "valueTemplate": "{{working.token}}",
                        "maxAgeTemplate": str(LIFE_MS),
                    }
                ],
            ),
        ],
    }


def _reply(id: str, label: str, x: int, **config: Any) -> dict[str, Any]:
    return {
        "id": id,
        "type": "EndpointReplyNode",
        "config": {"replyIdPath": "data.replyId", **config},
        "meta": {"category": "output", "name": "endpoint-reply", "label": label, "x": x, "y": 240},
        "outputIds": [],
    }
