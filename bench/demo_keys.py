"""The access keys of the demo: each start makes them anew, as nobody can read the secret of an older one."""

from __future__ import annotations

from trunkline.bench.session import Json, Session, record_id


async def replace_key(session: Session, application_id: str, wanted: Json) -> tuple[str, str]:
    """Make an access key in place of all of its name; return it and its secret. Raises BenchError."""
    path = f"/applications/{application_id}/keys"
    query = {"filterField": "name", "filter": wanted["name"]}
    for key in (await session.call("GET", path, query=query))["items"]:
        await session.call("DELETE", f"{path}/{record_id(key)}")
    made = await session.call("POST", path, wanted)
    return str(made["key"]), str(made["secret"])
