"""Queries over the states of many devices."""

from __future__ import annotations

from trunkline.actors.fleet.devices.queries.measurement_messages import (
    Downsampling,
    LastValueQuery,
    LastValues,
    QueryLastValues,
    QueryTimeSeries,
    TimeSeries,
    TimeSeriesQuery,
)
from trunkline.http.calls.route import APP_PATH, Route

ROUTES = (
    Route(
        method="POST",
        path=APP_PATH + "/data/time-series-query",
        operation="data.timeSeriesQuery",
        summary="Query the points of many devices, raw or aggregated",
        message=QueryTimeSeries,
        query=Downsampling,
        body=TimeSeriesQuery,
        reply=TimeSeries,
        device="read",
    ),
    Route(
        method="POST",
        path=APP_PATH + "/data/last-value-query",
        operation="data.lastValueQuery",
        summary="Query the newest values of many devices",
        message=QueryLastValues,
        body=LastValueQuery,
        reply=LastValues,
        device="read",
    ),
)
