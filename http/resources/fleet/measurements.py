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
from trunkline.http.calls.route import APP_PATH
from trunkline.http.calls.verbs import post

ROUTES = (
    post(
        APP_PATH + "/data/time-series-query",
        "data.timeSeriesQuery",
        "Query the points of many devices, raw or aggregated",
        QueryTimeSeries,
        query=Downsampling,
        body=TimeSeriesQuery,
        reply=TimeSeries,
        device="read",
        access="read",
    ),
    post(
        APP_PATH + "/data/last-value-query",
        "data.lastValueQuery",
        "Query the newest values of many devices",
        QueryLastValues,
        body=LastValueQuery,
        reply=LastValues,
        device="read",
        access="read",
    ),
)
