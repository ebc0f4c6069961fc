"""The job log of an application, as a client sees it."""

from __future__ import annotations

from tests.e2e.conftest import Server

UNKNOWN = "0123456789abcdef01234567"


async def test_the_log_of_an_application_without_jobs_is_empty(server: Server) -> None:
    application = await server.application()
    listed = await server.call("GET", f"{application}/jobLogs")
    assert (listed["items"], listed["totalCount"]) == ([], 0)
    assert (listed["sortField"], listed["sortDirection"]) == ("runQueuedAt", "asc")
    assert listed["_links"]["self"]["href"] == f"{application}/jobLogs"


async def test_an_unknown_job_is_404_in_both_forms_of_its_id(server: Server) -> None:
    application = await server.application()
    for id in (UNKNOWN, "ASNFZ4mrze8BI0Vn"):
        refused = await server.call("GET", f"{application}/jobLogs/{id}", status=404)
        assert "There is no such job here" in refused["message"]
    await server.call("GET", f"{application}/jobLogs/ASNFZ4mrze8BI0V", status=400)


async def test_a_query_is_checked_against_the_fields_of_jobs(server: Server) -> None:
    application = await server.application()
    path = f"{application}/jobLogs"
    found = await server.call("GET", path, params={"query": '{"status": {"$in": ["queued"]}}'})
    assert found["query"] == {"status": {"$in": ["queued"]}}
    refused = await server.call("GET", path, params={"query": '{"state": "queued"}'}, status=400)
    assert "query.state" in refused["message"]
    await server.call("GET", path, params={"sortField": "creationDate"}, status=400)
