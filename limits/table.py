"""All limits, those of the API and Trunkline's own, each with its unit and its reason.

Owns the values, what they count (`unit`), per what (`per`) and their reasons (`reason`), and changing them by
configuration. Does not own enforcement: `window.py` implements throttles, `actors/` and `http/` enforce bounds and
gates.

All limits are in one table, in a file that is long because of it: a limit that is defined where it is used is hard
to find, and an operator who changes a number needs to know what it costs. "MB" and "GB" of the API are decimal
(10^6, 10^9); our own memory bounds are binary.
"""
# ruff: noqa: RUF009 - _throttle, _gate and _bound only wrap dataclasses.field

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trunkline.limits.errors import SettingsError

KIB: Final = 1024
MIB: Final = 1024 * KIB
MB: Final = 1_000_000
GB: Final = 1_000 * MB
MINUTE_S: Final = 60
HOUR_S: Final = 60 * MINUTE_S
DAY_S: Final = 24 * HOUR_S
DAY_MS: Final = 1000 * DAY_S

# A window stores each allowed call (8 bytes), so a rate is itself bounded: 800 kB for each throttled object.
RATE_CALLS_MAX: Final = 100_000
RATE_WINDOW_MAX_S: Final = DAY_S


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `calls` calls in any `window_s` seconds."""

    calls: int
    window_s: float

    def __post_init__(self) -> None:
        if type(self.calls) is not int or not 1 <= self.calls <= RATE_CALLS_MAX:
            raise SettingsError(
                "calls", f"is {self.calls!r}", f"give a whole number from 1 to {RATE_CALLS_MAX}"
            )
        if type(self.window_s) not in (int, float) or not 0 < self.window_s <= RATE_WINDOW_MAX_S:
            raise SettingsError(
                "window_s",
                f"is {self.window_s!r}",
                f"give seconds, more than 0 and at most {RATE_WINDOW_MAX_S}",
            )


def _throttle(calls: int, window_s: float, per: str, reason: str, unit: str = "calls per window") -> Any:
    return dataclasses.field(
        default=Rate(calls, window_s), metadata={"unit": unit, "per": per, "reason": reason}
    )


def _gate(
    per: str, reason: str = "The API's limit: it is a long read; two at once would slow each other."
) -> Any:
    return dataclasses.field(default=1, metadata={"unit": "concurrent calls", "per": per, "reason": reason})


def _bound(value: float, unit: str, reason: str, per: str = "") -> Any:
    return dataclasses.field(default=value, metadata={"unit": unit, "per": per, "reason": reason})


def _keep_days(reason: str) -> Any:
    """A time after which stored entries are removed; 0, the default: never."""
    reason = f"0: until somebody removes them. {reason}"
    return dataclasses.field(default=0, metadata={"unit": "days", "per": "", "reason": reason, "zero": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The values of all limits. A throttle that is None is disabled."""

    # The API's throttles.
    send_state: Rate | None = _throttle(30, 15, "device", "The API's limit: about two reports a second.")
    send_command: Rate | None = _throttle(30, 15, "device", "The API's limit, separate from that of states.")
    set_connection_status: Rate | None = _throttle(30, 15, "device", "The API's limit, separate from others.")
    mqtt_publish: Rate | None = _throttle(30, 15, "device", "The API's limit; a user or an API token is one.")
    mqtt_client: Rate | None = _throttle(
        300,
        15,
        "direction of an MQTT client",
        "The API's limit for all messages. Who sends more is banned; who would be sent more waits.",
    )
    mqtt_topic: Rate | None = _throttle(
        30,
        15,
        "topic and direction of an MQTT client",
        "The API's limit for messages to one topic. Who sends more is banned; who would be sent more waits.",
    )
    mqtt_connect: Rate | None = _throttle(
        300, 15, "application", "The API's limit for new connections of MQTT clients."
    )
    event_create: Rate | None = _throttle(
        15, 15, "application", "The API's limit: events are read by people."
    )
    virtual_button: Rate | None = _throttle(
        100, 10, "virtual button", "The API's limit for pressing a button."
    )
    webhook_call: Rate | None = _throttle(
        100, 10, "webhook", "The API's limit for the calls that other systems make."
    )
    endpoint_request: Rate | None = _throttle(
        500, 10, "endpoint of an experience", "The API's limit: 50 requests a second, 500 at once."
    )
    embedded_export: Rate | None = _throttle(
        1, 300, "application", "The API's limit: an export compiles files."
    )
    notebook_export: Rate | None = _throttle(
        1, 900, "notebook", "The API's limit: an export scans all inputs."
    )

    # Our own throttles.
    backlog_states: Rate | None = _throttle(
        50_000,
        1,
        "application",
        "`calls` counts states. An hour of 1,000 devices that reported each second takes 72 seconds.",
        "states per window",
    )
    login_per_account: Rate | None = _throttle(
        10,
        60,
        "account",
        "Failed attempts only: prevents guessing a password, permits typing errors.",
    )
    login_per_address: Rate | None = _throttle(
        60,
        60,
        "address",
        "Failed attempts only: a password hash is expensive on purpose; an office shares one address.",
    )
    invite_member: Rate | None = _throttle(
        20, 60, "organization", "Each invitation is a mail to somebody who did not ask for it."
    )

    public_dashboard_data: Rate | None = _throttle(
        30, 60, "dashboard", "Answers made for readers without a token; kept ones are not counted."
    )
    verify_email: Rate | None = _throttle(
        3, 60, "user", "Each is a mail to an address that may belong to somebody else."
    )

    # The API's gates: calls that may run at the same time.
    archive_data_concurrent_calls_max: int = _gate("application")
    backfill_archive_data_concurrent_calls_max: int = _gate("application")
    full_data_tables_archive_concurrent_calls_max: int = _gate("application")
    full_events_archive_concurrent_calls_max: int = _gate("application")
    clone_or_import_concurrent_calls_max: int = _gate(
        "owner", "The API's limit: both create complete applications."
    )
    application_export_concurrent_calls_max: int = _gate("application")
    application_import_concurrent_calls_max: int = _gate(
        "application", "The API's limit: two imports would interfere."
    )
    dashboard_report_concurrent_calls_max: int = _gate(
        "dashboard", "The API's limit: a report is rendered and mailed."
    )
    data_export_concurrent_calls_max: int = _gate("application")
    data_table_export_concurrent_calls_max: int = _gate("data table")
    device_export_concurrent_calls_max: int = _gate("device")
    devices_export_concurrent_calls_max: int = _gate("application")
    payload_counts_concurrent_calls_max: int = _gate("application")
    event_export_concurrent_calls_max: int = _gate("application")

    # The API's sizes.
    answer_bytes_max: int = _bound(
        30 * MB,
        "bytes",
        "Stored bytes behind one answer. A page of a thousand entries of a megabyte each would be a gigabyte.",
        "request",
    )
    time_series_values_max: int = _bound(
        2_000_000, "values", "Those that one query keeps in memory at a time: about 200 MB.", "request"
    )
    time_series_bytes_max: int = _bound(
        30 * MB, "bytes", "The API's limit for the data of one query.", "request"
    )
    downsampled_points_max: int = _bound(
        10_000,
        "points",
        "Those of one attribute of a device in a chart; more than a screen has pixels.",
        "request",
    )
    rows_bytes_max: int = _bound(20 * MB, "bytes", "The API's limit for rows that one call reads.", "request")
    multipart_bytes_max: int = _bound(
        10 * MB, "bytes", "The API's limit; larger files use direct uploads.", "request"
    )
    file_bytes_max: int = _bound(5 * GB, "bytes", "The API's limit for a direct upload.", "file")
    files_bytes_max: int = _bound(
        500 * GB,
        "bytes",
        "The contents of all files; above it uploads get 507. Set it to what the disk can hold. In the last tenth, the "
        "files of an owner have at most as many bytes as stay free.",
    )
    application_files_bytes_max: int = _bound(
        50 * GB, "bytes", "One application must not use all room for files.", "application"
    )
    uploads_max: int = _bound(
        32,
        "uploads",
        "Uploads at a time: each has some MiB in memory and a file open; half of them for one owner. Then 503.",
    )
    file_downloads_max: int = _bound(
        256,
        "downloads",
        "Each keeps a file open; half of them for files of one owner, a quarter for one address. Then 503.",
    )
    form_fields_bytes_max: int = _bound(
        128 * KIB,
        "bytes",
        "Everything of a form but its files is in memory; an upload form has 2 KiB.",
        "form",
    )
    form_parts_max: int = _bound(100, "parts", "Fields and files; an upload form has nine.", "form")
    blobs_part_bytes: int = _bound(
        8 * MIB,
        "bytes",
        "A part of a file on its way to a bucket is in memory; a file has up to 10,000 parts.",
        "upload",
    )
    file_threads_max: int = _bound(
        8, "threads", "Uploads and downloads of files wait in them for the disk or the object store."
    )
    alexa_certificates_max: int = _bound(
        16, "certificates", "Amazon signs with one for months; a changed address of it is fetched again."
    )
    webhook_body_bytes_max: int = _bound(
        256_000, "bytes", "The API's limit for the body of a webhook call.", "request"
    )
    webhook_reply_wait_s: float = _bound(
        60.0,
        "seconds",
        "The API's limit: how long a call of a webhook waits for the reply of a workflow.",
        "call",
    )
    webhook_connections_max: int = _bound(
        100, "connections", "The API's limit for open WebSocket connections of webhooks.", "application"
    )
    webhook_waiting_calls_max: int = _bound(
        1000, "calls", "Calls that wait for workflows at the same time; more are 503.", "application"
    )
    string_bytes_max: int = _bound(
        64 * KIB, "bytes", "The API's limit for a string attribute; also used for a cell.", "value"
    )

    search_names_max: int = _bound(
        1_000_000, "names", "Three to four microseconds each, in a thread; a search ends there.", "search"
    )
    search_results_max: int = _bound(
        50, "results", "Of each kind of record; whoever gets so many types another letter.", "search"
    )

    templates_max: int = _bound(
        1000, "templates", "They are in memory, and each list looks at all of them.", "catalogue"
    )
    template_bytes_max: int = _bound(
        128 * KIB, "bytes", "The API's limit for a readme; the same for the rest of a template.", "file"
    )

    # The API's shapes.
    device_bytes_max: int = _bound(
        2 * MIB,
        "bytes",
        "The record of a device grows by an attribute at a time; it is read as a whole and stored with each change.",
        "device",
    )
    globals_max: int = _bound(100, "globals", "The API's limit.", "application")
    event_data_bytes_max: int = _bound(
        64 * KIB,
        "bytes",
        "As JSON, for reading by people; the same as the longest text of a state.",
        "event or update",
    )
    changed_events_max: int = _bound(
        500, "events", "One atomic batch: measured 23 ms, during which the event loop is blocked.", "call"
    )
    kept_event_changes_max: int = _bound(
        1_000,
        "changes",
        "Clients that come back are told of these: a day of a usual application.",
        "application",
    )
    changed_events_bytes_max: int = _bound(
        4 * MIB,
        "bytes",
        "The size of 500 events with short comments and histories, plus a reserve.",
        "call",
    )
    flow_parts_max: int = _bound(
        1_000,
        "parts",
        "Triggers, nodes or globals. Each is checked when it is saved, and a turn of the loop takes at most 5 ms.",
        "workflow",
    )
    flow_bytes_max: int = _bound(
        2 * MIB,
        "bytes",
        "Triggers, nodes and globals as JSON. They are changed one after the other, and stored as a whole.",
        "workflow version",
    )
    run_steps_max: int = _bound(
        1_000_000,
        "steps",
        "A loop over 262,144 items with four nodes; a cycle ends there, or at run_deadline_s.",
        "run",
    )
    run_deadline_s: float = _bound(60, "seconds", "The API's limit, also for waiting.", "run")
    concurrent_flow_runs_max: int = _bound(
        8, "runs", "Those of one workflow that wait for something; others queue.", "workflow"
    )
    concurrent_application_runs_max: int = _bound(
        64, "runs", "The same for all workflows of an application.", "application"
    )
    flow_runs_max: int = _bound(
        512,
        "runs",
        "The same for all workflows, half of them for one owner; only one works at a time.",
        "server",
    )
    flow_queue_length_max: int = _bound(
        10_000, "triggers", "Above it the oldest is dropped: 4 MB in memory.", "workflow"
    )
    trigger_queue_length_max: int = _bound(
        200_000, "triggers", "The same for all workflows: 80 MB in memory.", "server"
    )
    scheduled_presses_max: int = _bound(
        10_000,
        "presses",
        "Virtual buttons that workflows let be pressed later: 3 MB in memory.",
        "application",
    )
    scheduled_press_bytes_max: int = _bound(16 * KIB, "bytes", "As of a storage entry.", "press")
    inactivity_devices_max: int = _bound(
        500_000,
        "devices",
        "Those that triggers of inactivity and alarms wait for: 150 MB in memory. Half of them for one owner.",
        "server",
    )
    alarm_rules_max: int = _bound(10_000, "alarm rules", "All are in memory: about 2 kB each.", "application")
    wide_alarm_rules_max: int = _bound(
        100,
        "alarm rules",
        "Those with a query, or about all devices: each device asks all of them when a rule changes, some 0.2 ms.",
        "application",
    )
    device_alarm_rules_max: int = _bound(
        100, "alarm rules", "The oldest ones that are about it: some 0.1 ms for each state.", "device"
    )
    tried_devices_max: int = _bound(
        1_000, "devices", "Those whose last day an alarm rule is tried on.", "call"
    )
    tried_states_max: int = _bound(
        50_000, "states", "Those that an alarm rule is tried on: about a second of a thread.", "call"
    )
    alarm_notices_max: int = _bound(
        20,
        "notices",
        "Sent at once; then one each alarm_notice_interval_s. One to more than 11 receivers counts as several.",
        "application",
    )
    alarm_notice_interval_s: float = _bound(6, "seconds", "Ten notices a minute.", "application")
    traffic_applications_max: int = _bound(
        10_000, "applications", "Those whose traffic is counted in memory: 40 MB.", "server"
    )
    counted_fleets_max: int = _bound(
        64,
        "fleets",
        "Those of the applications whose overview was asked for last: 29 bytes a device in memory.",
        "server",
    )
    run_attempts_max: int = _bound(
        3, "attempts", "A run that is in progress at each crash may be the cause of it.", "run"
    )
    failed_run_records_max: int = _bound(1_000, "run records", "The newest failed ones are kept.", "workflow")
    good_run_records_max: int = _bound(
        200, "run records", "The newest of the sampled ones are kept.", "workflow"
    )
    kept_runs_max: int = _bound(
        5, "runs", "Of the good ones so many are kept, and twice as many failed ones.", "workflow and second"
    )
    run_records_bytes_max: int = _bound(16 * MIB, "bytes", "The oldest run goes first.", "workflow")
    run_record_payload_bytes_max: int = _bound(
        256 * KIB, "bytes", "A larger payload is not kept, so the run cannot be repeated.", "run"
    )
    run_records_keep_days: int = _bound(30, "days", "Run records and sums of minutes.")
    run_loop_items_max: int = _bound(262_144, "items", "The API's limit.", "loop")
    run_payload_bytes_max: int = _bound(
        5 * MIB,
        "bytes",
        "Each branch has a copy in memory; an answer of an HTTP call has at most as much.",
        "run",
    )
    triggered_flows_max: int = _bound(
        100, "flows", "Workflows that are deleted with their webhook or integration, in one batch.", "call"
    )
    flow_versions_max: int = _bound(
        1000, "versions", "They are counted one by one in each list: about a millisecond.", "workflow"
    )
    flow_mails_max: int = _bound(
        10, "mails", "The API's burst for mails of nodes; then one each flow_mail_interval_s.", "workflow"
    )
    flow_mail_interval_s: float = _bound(60, "seconds", "The API's rate for mails of nodes.", "workflow")
    flow_mail_addresses_max: int = _bound(5, "addresses", "The API's limit for a mail of a node.", "mail")
    flow_storage_value_bytes_max: int = _bound(
        16 * KIB, "bytes", "The API's limit, as JSON.", "storage entry"
    )
    flow_storage_entries_max: int = _bound(
        10_000, "storage entries", "One answer shows all of them: about 30 ms in a thread.", "workflow"
    )
    flow_storage_bytes_max: int = _bound(
        8 * MIB, "bytes", "Keys and values as JSON; one answer shows all of them.", "workflow"
    )
    flow_states_bytes_max: int = _bound(
        8 * MIB, "bytes", "What latches and comparing nodes keep: some 60,000 of them.", "workflow"
    )
    deleted_versions_max: int = _bound(
        100, "versions", "Deleted in one turn: some 10 ms; more are deleted by a job.", "call"
    )
    replayed_runs_max: int = _bound(
        100, "runs", "Queued again in one turn, with 4 MiB of triggers: some 10 ms.", "call"
    )
    deployment_logs_max: int = _bound(
        100, "logs", "The newest changes; they are stored with the deployment.", "deployment"
    )
    event_updates_max: int = _bound(100, "updates", "The API's limit for an event's kept history.", "event")
    selected_devices_max: int = _bound(
        1000,
        "devices",
        "The API's limit for what tags and queries select; all are asked in one turn.",
        "call",
    )
    changed_devices_max: int = _bound(
        100,
        "devices",
        "Some milliseconds of the event loop for every 20 devices, fewer if they are large; a job changes more.",
        "call",
    )
    recipe_rows_max: int = _bound(
        10_000, "rows", "As many as fit into a body with short names; a job creates them in parts.", "call"
    )
    removed_entries_max: int = _bound(
        500,
        "entries",
        "Blocks of states, and log entries, that one batch of a removal deletes: some milliseconds of the event loop.",
        "batch",
    )
    bulk_errors_max: int = _bound(
        100,
        "errors",
        "Reasons that a change of many devices shows; the log of a job contains them.",
        "call or job",
    )
    update_operations_max: int = _bound(
        25, "operations", "The API's limit for a change of many devices.", "call"
    )
    names_max: int = _bound(
        1000, "names", "The API's limit for a search of names, tag keys and tag values.", "request"
    )
    device_counts_days_max: int = _bound(
        366, "days", "A year of days, with the day of a leap year.", "request"
    )
    experience_endpoints_max: int = _bound(
        1000,
        "endpoints",
        "A new route is compared with all others: some 15 ms of the event loop.",
        "application",
    )
    experience_views_max: int = _bound(1000, "views", "As many as endpoints.", "application")
    experience_versions_max: int = _bound(
        100, "versions", "Named ones. Each has copies of all endpoints and views.", "application"
    )
    experience_version_bytes_max: int = _bound(
        8 * MIB,
        "bytes",
        "The endpoints and views of a version are copied in one batch: some 80 ms of the event loop.",
        "version",
    )
    experience_domains_max: int = _bound(100, "domains", "All are read with each version.", "application")
    experience_slugs_max: int = _bound(100, "slugs", "All are read with each version.", "application")
    experience_removed_records_max: int = _bound(
        200, "records", "Those that one turn of the deletion of an experience removes at most.", "turn"
    )
    experience_body_bytes_max: int = _bound(
        256_000, "bytes", "The body of a request to an experience; workflows get all of it.", "request"
    )
    experience_reply_wait_s: float = _bound(
        60.0, "seconds", "How long a request to an experience waits for the reply of a workflow.", "request"
    )
    experience_waiting_requests_max: int = _bound(
        1000, "requests", "Requests that wait for workflows at the same time; more are 503.", "application"
    )
    experience_streams_max: int = _bound(
        500,
        "streams",
        "Answers of endpoints that stay open, to stream topics: each message is compared with the topics of all.",
        "application",
    )
    experience_page_chars_max: int = _bound(
        4_000_000, "characters", "The text of a page with its layout and components.", "page"
    )
    experience_sites_bytes_max: int = _bound(
        64 * MIB, "bytes", "Stored bytes of the versions of experiences that are kept in memory to be served."
    )
    experience_certificates_max: int = _bound(
        1000, "certificates", "Those of domains that are kept ready for connections; some 10 kB each."
    )
    experience_counts_delay_s: float = _bound(
        1.0, "seconds", "Requests to experiences are counted in memory for this time before they are stored."
    )
    experience_group_members_max: int = _bound(
        1000, "members", "The API's limit for the users, and for the endpoints, of one group.", "group"
    )
    experience_group_ancestors_max: int = _bound(
        100, "ancestors", "Groups above a group; every read of a group follows them.", "group"
    )
    rows_limit_max: int = _bound(
        10_000, "rows", "Rows are also bounded by bytes; this bounds the scan.", "request"
    )
    inserted_rows_max: int = _bound(
        1000, "rows", "The API's limit for one insert; it blocks the event loop for about 10 ms.", "call"
    )
    sorted_rows_max: int = _bound(
        100_000,
        "rows",
        "Offset plus limit of a sort without an index: at most 40 MB while it runs.",
        "request",
    )
    url_ttl_default_s: int = _bound(900, "seconds", "The API's default for a file's temporary URL.")
    archive_age_min_days: int = _bound(31, "days", "The API's rule: younger data may still be changed.")
    # Archives.
    archive_interval_s: float = _bound(
        HOUR_S,
        "seconds",
        "Between two looks for days that have become old enough; a failed day waits for the next.",
    )
    archive_put_files_max: int = _bound(
        8, "files", "Put at a time: a bucket takes 50 ms for each, and disks sync several together.", "job"
    )
    device_restore_days: int = _bound(93, "days", "The API's promise to people who deleted by mistake.")
    future_state_max_s: int = _bound(DAY_S, "seconds", "The API's limit: a later time means a wrong clock.")

    # Users.
    email_link_s: int = _bound(
        DAY_S, "seconds", "People read mail once a day; an old link may be read by others.", "link"
    )
    two_factor_key_s: int = _bound(
        900, "seconds", "Time to scan a new key and to enter the first code.", "key"
    )
    sso_request_s: int = _bound(
        900, "seconds", "Time to log in at the identity provider; an older answer is refused.", "login"
    )
    sso_clock_skew_s: int = _bound(
        120, "seconds", "How far the clocks of identity provider and server may differ, to each side."
    )
    ended_logins_max: int = _bound(
        500,
        "logins",
        "Logins that the user has ended and whose tokens have not expired; one more ends the oldest for good, "
        "with all that began before it.",
        "user",
    )
    recent_list_items_max: int = _bound(
        10, "items", "What one looks at is a short list; items of a type in a parent.", "list"
    )
    recent_items_max: int = _bound(
        250, "items", "All recent items are one value of about 20 kB, written with each item.", "user"
    )

    # Requests and connections.
    body_bytes_max: int = _bound(
        MIB, "bytes", "A body is kept in memory completely; 1 MiB is 10,000 small states.", "request"
    )
    body_values_max: int = _bound(
        20_000,
        "values",
        "Values of the JSON of a body with one record or payload, which the event loop stores: some milliseconds.",
        "request",
    )
    bulk_body_values_max: int = _bound(
        100_000,
        "values",
        "The same of states, rows and imported workflows: decoding them takes 15 ms of a thread, and no other Python "
        "runs meanwhile.",
        "request",
    )
    header_bytes_max: int = _bound(
        32 * KIB, "bytes", "Request line and headers: 8 KiB token, 8 KiB query, plus a reserve.", "request"
    )
    headers_length_max: int = _bound(
        100, "header fields", "More than any client sends; each costs an object.", "request"
    )
    pipelined_requests_max: int = _bound(
        100,
        "requests",
        "Requests that a connection may send before their answers; above it 429.",
        "connection",
    )
    http2_streams_max: int = _bound(
        100,
        "streams",
        "Each request is one. The least that RFC 9113 recommends; browsers rely on it.",
        "HTTP/2 connection",
    )
    http2_answers_max: int = _bound(
        8,
        "answers",
        "Answers that are made or wait for the client's window at a time: each is in memory. Open streams do not "
        "count.",
        "HTTP/2 connection",
    )
    connections_max: int = _bound(
        16_384,
        "connections",
        "Each costs a task and its buffers: some 7 kB, with TLS 23 kB. An owner has streams, links, WebSockets "
        "of webhooks and callers who wait for workflows on at most half of them; more get 503. When all are taken, an "
        "idle one of the address with the most ends for a new one.",
    )
    backlog_length_max: int = _bound(4096, "connections", "After an outage a whole fleet reconnects at once.")
    head_timeout_s: float = _bound(
        10, "seconds", "A head is one packet; a slower client only occupies a connection.", "request"
    )
    certificate_interval_s: float = _bound(
        60, "seconds", "Between two looks whether the files of TLS have changed: they are read, some 10 kB."
    )
    body_timeout_s: float = _bound(30, "seconds", "1 MiB over a slow mobile link (300 kbit/s).", "request")
    write_timeout_s: float = _bound(
        30, "seconds", "A client that reads nothing for so long is considered gone.", "write"
    )
    request_timeout_s: float = _bound(
        30,
        "seconds",
        "No call waits longer for an actor or a disk; a write waits as long as a log cannot be reached.",
        "request",
    )
    connection_idle_s: float = _bound(
        75, "seconds", "Longer than the usual 60 s of proxies, so that they close first.", "connection"
    )
    drain_s: float = _bound(
        10, "seconds", "Supervisors send SIGKILL after 30 s or later; open calls need far less."
    )

    # Streams and the device link.
    streams_max: int = _bound(
        16_384,
        "streams",
        "As many as connections, as each stream is one; half of them for one owner. Then 503.",
    )
    stream_buffer_length_max: int = _bound(
        256,
        "events",
        "About eight throttle windows of commands; a reader further behind is too slow.",
        "subscriber",
    )
    stream_buffer_bytes_max: int = _bound(MIB, "bytes", "256 large events must not use 16 MiB.", "subscriber")
    stream_replay_max: int = _bound(
        1000, "events", "One page of history when a subscriber returns.", "subscriber"
    )
    websocket_ping_interval_s: float = _bound(
        60, "seconds", "A client that is silent for so long is asked whether it is there.", "connection"
    )
    websocket_pong_timeout_s: float = _bound(
        30, "seconds", "A network that is slow may lose a few packets before the answer.", "connection"
    )
    websocket_buffer_bytes_max: int = _bound(
        MIB, "bytes", "A client that has not taken this much of what it was sent is closed.", "connection"
    )
    application_streams_max: int = _bound(
        100,
        "streams",
        "Each different selection is asked about each state of the application.",
        "application",
    )
    application_stream_buffer_length_max: int = _bound(
        20_000, "events", "A second of the states of a busy application.", "subscriber"
    )
    application_stream_buffer_bytes_max: int = _bound(
        4 * MIB, "bytes", "20,000 usual states; 100 streams must not use more than 400 MiB.", "subscriber"
    )
    link_frame_bytes_max: int = _bound(
        MIB, "bytes", "The same as a request body: it carries the same states.", "frame"
    )
    link_hello_s: float = _bound(
        10,
        "seconds",
        "The first frame follows the handshake at once; slow networks need a few seconds.",
        "link",
    )
    link_unacked_frames_max: int = _bound(
        64, "frames", "Hides the latency of 64 commits; more only uses memory.", "link"
    )
    mqtt_packet_bytes_max: int = _bound(
        256 * 1024 + 1024, "bytes", "The API's limit of 256 KiB for a message, with its topic.", "packet"
    )
    mqtt_connect_s: float = _bound(
        10, "seconds", "The CONNECT follows at once; slow networks need a few seconds.", "connection"
    )
    mqtt_in_flight_messages_max: int = _bound(
        1_024, "messages", "Hides the latency of a commit at 100,000 messages a second.", "direction"
    )
    mqtt_waiting_messages_max: int = _bound(
        1_000, "messages", "What a client has not taken or acknowledged; above it, it is too slow.", "client"
    )
    mqtt_buffer_bytes_max: int = _bound(
        MIB, "bytes", "Four messages of the largest size that a client has not taken.", "connection"
    )
    mqtt_subscriptions_max: int = _bound(
        1_000, "subscriptions", "A node of a tree in memory each, about 1 kB.", "client"
    )
    mqtt_topic_aliases_max: int = _bound(
        64,
        "topic aliases",
        "As many topics as a device usually has; each keeps its text.",
        "direction of a client",
    )
    mqtt_session_s_max: int = _bound(
        7 * 86_400, "seconds", "A week without its client; clients of 3.1.1 cannot say how long.", "session"
    )
    mqtt_sessions_max: int = _bound(
        100_000, "sessions", "Sessions that outlive connections, 0.5 kB of disk each.", "application"
    )
    mqtt_queue_messages_max: int = _bound(
        10_000, "messages", "A day of a message each ten seconds, for a client that is away.", "session"
    )
    mqtt_queue_bytes_max: int = _bound(
        16 * MIB,
        "bytes",
        "10,000 messages of 1.6 kB; those above it are dropped, counted and logged.",
        "session",
    )
    retained_messages_max: int = _bound(
        10_000, "messages", "One for each of some attributes of a thousand devices.", "application"
    )
    retained_bytes_max: int = _bound(
        16 * MIB, "bytes", "10,000 retained messages of 1.6 kB each.", "application"
    )
    waiting_commands_max: int = _bound(
        256, "commands", "Eight windows of commands; the list of what waits is written with each.", "device"
    )
    link_page_commands_max: int = _bound(
        64, "commands", "What a link is given in one turn of its device: a fraction of a millisecond.", "turn"
    )
    states_per_call_max: int = _bound(
        10_000, "states per call", "Measured 1.7 us each: blocks the event loop for 17 ms.", "call"
    )

    # Actors, caches and jobs.
    mailbox_length_max: int = _bound(
        256, "messages", "About eight throttle windows of one device; above it 503 at once.", "actor"
    )
    organization_invites_max: int = _bound(
        100,
        "invites",
        "One answer shows all of them; expired ones make room for new ones.",
        "organization",
    )
    address_invites_max: int = _bound(
        20, "invites", "Nobody gets more mail than that from strangers.", "e-mail address"
    )
    invite_s: int = _bound(
        7 * DAY_S, "seconds", "People answer mail within a week, holidays aside.", "invitation"
    )
    organization_members_max: int = _bound(
        200, "members", "One answer shows all of them, with a read for each.", "organization"
    )
    user_organizations_max: int = _bound(
        100, "organizations", "A list of applications merges an index of each.", "user"
    )
    actor_idle_s: float = _bound(
        60, "seconds", "Longer than the throttle windows of devices, so that none is lost with an idle actor."
    )
    actors_active_max: int = _bound(
        200_000,
        "actors active",
        "About 1.5 kB each with their throttles: 300 MB; above it idle ones are unloaded, else 503.",
    )
    actor_sweep_s: float = _bound(5, "seconds", "Interval of the search for idle actors, a part at a time.")
    purge_pause_s: float = _bound(
        0.05, "seconds", "Between slices of a removal, so that it takes only a few percent of the server."
    )
    purge_interval_s: float = _bound(
        60, "seconds", "Time until the removal of a deleted application's data begins."
    )
    admission_cache_length_max: int = _bound(
        16_384,
        "calls",
        "Some 0.6 kB each, 10 MB; a miss costs 8 us. One for each busy device and path.",
    )
    head_cache_length_max: int = _bound(
        16_384,
        "heads",
        "Some 1.5 kB each, 25 MB; a miss costs 10 us. One for each busy device and body length.",
    )
    token_cache_length_max: int = _bound(65_536, "tokens", "Some 1 kB each, 64 MB; a miss costs 17 us.")
    login_windows_length_max: int = _bound(
        10_000,
        "windows",
        "Users, devices and addresses with recent failures, so many of each: about 10 MB in all.",
    )
    password_threads_max: int = _bound(
        2, "threads", "A hash uses a core for 50 ms and 64 MiB of memory; more than cores gain nothing."
    )
    logins_checking_max: int = _bound(
        64,
        "logins checking",
        "A hash uses a core for 50 ms, two run at once: 2 seconds; above it 503. Addresses with none under way find as "
        "many places again.",
    )
    logged_logins_per_minute_max: int = _bound(
        60, "logins per minute", "Failed ones in the log: whoever guesses passwords must not fill the disk."
    )
    loop_turn_ms_max: float = _bound(
        5,
        "milliseconds",
        "A longer turn of the event loop, for which all others wait, is counted and listed, and logged unless it is a "
        "short pause. Nothing ends it.",
        "turn",
    )
    logged_turns_per_minute_max: int = _bound(
        12, "turns per minute", "Long ones in the log; the others are counted, and the worst are listed."
    )
    jobs_waiting_length_max: int = _bound(1000, "jobs", "Jobs survive a restart; above it 503.")
    jobs_running_max: int = _bound(
        3, "jobs running", "Jobs are long scans, about as many as cores; one owner gets at most two of three."
    )
    application_jobs_max: int = _bound(
        100,
        "jobs",
        "Open jobs are stored in one value, and one application must not fill the queue.",
        "application",
    )
    job_attempts_max: int = _bound(
        5, "attempts", "A job that crashed the server five times is the cause.", "job"
    )
    job_pause_s: float = _bound(
        5, "seconds", "Before a failed job starts again; doubles: over a minute in all.", "job"
    )
    export_columns_max: int = _bound(
        2000, "columns", "Attributes of all devices in one table; spreadsheets end at 16,384 columns.", "job"
    )
    export_files_max: int = _bound(
        10_000,
        "files",
        "A file for each device; the directory of the archive is in memory: some 5 MB.",
        "job",
    )
    # Bundles.
    bundle_entries_max: int = _bound(
        100_000, "entries", "The directory is in memory: some 50 MB. Each file is an entry.", "bundle"
    )
    bundle_small_records_max: int = _bound(
        1000,
        "records",
        "An application with no more records and rows is exported while the call waits: a second at most.",
        "application",
    )
    job_wait_s: float = _bound(
        5, "seconds", "The longest wait of a call for the end of a small job; then it is answered with 202."
    )
    job_progress_s: float = _bound(
        2, "seconds", "Interval of updates to the log of a running job: one write each.", "job"
    )
    job_logs_max: int = _bound(
        1000, "job logs", "Above it the logs of ended jobs are deleted, the oldest first.", "application"
    )
    job_log_days: int = _bound(90, "days", "Older logs of ended jobs are deleted: a quarter of a year.")
    audit_entries_max: int = _bound(
        100_000, "entries", "Above it the oldest are removed: about 100 MB of disk.", "organization"
    )
    audit_entry_keep_s: float = _bound(365 * DAY_S, "seconds", "Older entries of an audit log are removed.")
    audit_body_bytes_max: int = _bound(
        8192,
        "bytes",
        "Of a longer field of a body, and of a longer body, an entry of the audit log holds the length only.",
        "body",
    )
    # Answers of calls with an Idempotency-Key.
    idempotency_keep_s: float = _bound(
        DAY_S, "seconds", "A call that is repeated later is a new call: clients repeat within hours."
    )
    idempotency_keys_max: int = _bound(
        10_000,
        "keys",
        "Above it the oldest is forgotten: 2.5 MB of disk, more than an hour of reports in the rate of the API.",
        "device, data table or application",
    )
    idempotency_bytes_max: int = _bound(
        64 * MIB,
        "bytes",
        "Answers of bulk inserts have some 30 KB; above it the oldest are forgotten.",
        "device, data table or application",
    )
    # Retention: what is removed because of its age. Nothing, unless the operator says so.
    state_keep_days: int = _keep_days(
        "A state of three values takes some 100 bytes; the newest state of a device stays."
    )
    command_keep_days: int = _keep_days("Some 150 bytes each.")
    log_keep_days: int = _keep_days("Entries of connection logs: some 80 bytes each.")
    event_keep_days: int = _keep_days("Days since the last change of an event; some 1.6 kB each.")
    payload_count_keep_days: int = _keep_days("Some 60 bytes for each hour in which a device had payloads.")
    retention_interval_s: float = _bound(
        HOUR_S, "seconds", "Between two searches for expired entries; those of an hour are removed together."
    )
    retention_pause_s: float = _bound(
        0.02, "seconds", "Between two batches, so that a removal leaves the event loop to the calls."
    )
    expired_devices_max: int = _bound(
        20, "devices", "Each is loaded for its part of the batch: 0.1 ms of the event loop.", "batch"
    )
    searched_devices_max: int = _bound(
        200, "devices", "Devices without expired entries: some 5 ms in a thread.", "search"
    )
    job_result_bytes_max: int = _bound(
        5 * GB, "bytes", "A result may be as large as a file of the API; it is never in memory.", "job"
    )
    job_results_bytes_max: int = _bound(
        50 * GB,
        "bytes",
        "All stored results, half of them for one owner; above it a job waits for others to expire.",
    )
    job_result_keep_s: int = _bound(
        7 * DAY_S,
        "seconds",
        "A link in a mail still works after the weekend; then the file is removed.",
        "job",
    )
    bundle_bytes_max: int = _bound(
        5 * GB, "bytes", "As large as the result of an export; it is streamed to the disk.", "imported bundle"
    )
    bundle_unpacked_bytes_max: int = _bound(
        20 * GB, "bytes", "What an import reads, and what its check may write to a temporary file.", "bundle"
    )
    bundle_unpacked_times: int = _bound(
        200, "times", "How much an entry may grow when it is unpacked; JSON grows 10 to 50 times.", "entry"
    )
    bundle_records_max: int = _bound(
        200_000, "records", "Their ids are in memory: 20 MB. Rows and files do not count.", "bundle"
    )
    bundle_rows_max: int = _bound(
        5_000_000, "rows", "They are inserted 500 at a time, each 20 ms of the event loop.", "bundle"
    )
    bundle_line_bytes_max: int = _bound(
        4 * MIB, "bytes", "A resource is in memory; the largest, a workflow, has 2 MiB.", "line of a bundle"
    )
    bundle_errors_max: int = _bound(
        1000, "errors", "More do not help anybody to correct a bundle; their number is shown.", "import"
    )
    import_inline_bytes_max: int = _bound(
        MIB, "bytes", "A larger bundle is imported by a job, which the call does not wait for.", "bundle"
    )
    import_url_s: float = _bound(
        600, "seconds", "5 GB at 70 Mbit/s; a slower server ends the attempt.", "bundle that is fetched"
    )
    import_wait_s: float = _bound(
        15, "seconds", "A call waits so long for its import, or for the check of a large one.", "call"
    )
    downloads_max: int = _bound(
        64,
        "downloads",
        "Results of jobs; each keeps a file open. Half for one owner, a quarter for one address. Then 503.",
    )
    integration_connections_max: int = _bound(
        200, "connections", "Each has a task and up to a message in memory; others wait.", "server"
    )
    enabled_integrations_max: int = _bound(
        20, "integrations", "One application must not use all connections.", "application"
    )
    integration_message_bytes_max: int = _bound(
        256 * KIB, "bytes", "The API's limit for MQTT; a larger one ends the connection.", "message"
    )
    integration_pause_s: float = _bound(
        1, "seconds", "Before an integration connects again; doubled after each failure.", "attempt"
    )
    integration_pause_max_s: float = _bound(
        300, "seconds", "The longest of these pauses: a broker that is gone for a day costs little."
    )
    outgoing_timeout_s: float = _bound(
        10, "seconds", "Time for a callback or mail server to answer.", "attempt"
    )
    outgoing_pause_s: float = _bound(
        5,
        "seconds",
        "Before the second attempt of a notification; doubles: over a minute in all.",
        "delivery",
    )
    outgoing_deliveries_max: int = _bound(
        8, "deliveries", "Each may wait for a slow network; as many mails and as many callbacks at once."
    )
    outbox_length_max: int = _bound(
        1000, "messages", "Mail kept if no mail server is set; above it the oldest is deleted."
    )
    outgoing_attempts_max: int = _bound(
        5, "attempts", "With doubling pauses enough for a short outage.", "delivery"
    )

    # Scripts of workflows.
    script_processes_max: int = _bound(
        4,
        "processes",
        "Half of them for one owner. Each has a core meanwhile, and some 20 MB; they start when they are needed.",
    )
    script_memory_bytes: int = _bound(
        64 * MIB,
        "bytes",
        "Values of a script. 3 MB of JSON always fit; 5 MB fit unless they are small numbers or objects.",
        "call",
    )
    script_address_space_bytes: int = _bound(
        256 * MIB, "bytes", "Bounds what the library uses beside the values of a script.", "process"
    )
    script_cpu_s: float = _bound(
        5, "seconds", "A script in a loop is ended; others wait for its process until then.", "call"
    )
    script_wall_s: float = _bound(
        6, "seconds", "The same where a script waits, or other processes use the cores.", "call"
    )
    script_payload_bytes_max: int = _bound(
        5 * MIB, "bytes", "The payload of a workflow as JSON, before and after a script.", "call"
    )
    script_log_bytes_max: int = _bound(
        64 * KIB, "bytes", "What it writes to the console, for reading by people.", "call"
    )
    script_length_max: int = _bound(
        500_000, "characters", "It is compiled for each call: some 15 ms for so many.", "script"
    )
    script_queue_length_max: int = _bound(
        256,
        "calls",
        "Those that wait for a process. If it is full, a call of the owner with the most is refused: 503.",
    )
    script_process_calls_max: int = _bound(
        10_000,
        "calls",
        "Then the process is replaced, so that leaks of the library do not add up.",
        "process",
    )

    # Notebooks.
    notebook_external_bytes_max: int = _bound(
        16 * MIB, "bytes", "What the URLs of its inputs return is in memory while it is exported.", "job"
    )

    # Files.
    file_path_chars_max: int = _bound(
        1024, "characters", "The API's limit for the path of a directory.", "path"
    )
    file_directories_max: int = _bound(
        64, "directories", "In each other; the path of a file is found by reading all of them.", "path"
    )
    upload_form_s: int = _bound(
        HOUR_S, "seconds", "Time to begin a direct upload; an unused form keeps nothing on the disk.", "form"
    )
    erased_files_max: int = _bound(
        100, "files", "One batch of the deletion of a directory: some 10 ms of the event loop.", "batch"
    )

    # Dashboards, their data and their reports.
    dashboard_blocks_max: int = _bound(
        200, "blocks", "A person looks at fewer; a report reads the data of each.", "dashboard"
    )
    dashboard_references_max: int = _bound(
        5000, "references", "Devices and tables that one change may newly name: each is looked up.", "call"
    )
    dashboard_rows_max: int = _bound(
        100, "rows", "The answer says how many more there are; a list of the API has them all.", "table"
    )
    dashboard_line_points_max: int = _bound(
        2000, "points", "As many as a wide screen has columns; raw series are downsampled to them.", "line"
    )
    dashboard_block_values_max: int = _bound(
        1_000_000, "values", "Read for one series of a block, in about half a second.", "series"
    )
    dashboard_places_max: int = _bound(
        10_000, "places", "The newest ones of devices on a map: some 80 bytes and 0.15 ms each.", "block"
    )
    dashboard_data_s: float = _bound(
        3, "seconds", "After them no further block is read; each answer holds a thread of reads.", "answer"
    )
    dashboard_data_bytes_max: int = _bound(
        10 * MIB,
        "bytes",
        "Five full charts of 2,000 points in 20 lines; further blocks are left out.",
        "answer",
    )
    public_answers_bytes_max: int = _bound(
        64 * MIB,
        "bytes",
        "Answers that are kept for readers of dashboards without a token; old ones are dropped.",
    )
    public_dashboards_length_max: int = _bound(
        1000,
        "dashboards",
        "Those read without a token, of which answers and counts are remembered; 1 kB each.",
    )
    public_dashboard_waiting_calls_max: int = _bound(
        100, "waiting calls", "One answer is made at a time; above it 503.", "dashboard"
    )
    report_rows_max: int = _bound(
        50, "rows", "A mail is read, not searched; the report says how many more there are.", "table"
    )
    report_charts_max: int = _bound(
        30, "charts", "Each is drawn and sent; further ones are left out.", "report"
    )
    report_characters_max: int = _bound(
        1_000_000, "characters", "Nobody reads more in a mail; blocks after that are left out.", "report"
    )
    report_bytes_max: int = _bound(
        10 * MIB, "bytes", "Most mail servers accept 10 to 25 MB; it is in memory while it is sent.", "report"
    )
    report_draw_s: float = _bound(
        120, "seconds", "Time of the process that draws; 30 full pictures take about 15 on a core.", "report"
    )
    report_draw_bytes: int = _bound(
        1024 * MIB, "bytes", "Address space of the process that draws; it uses about a third.", "report"
    )

    # The backlog lane.
    backlog_batch_states_max: int = _bound(
        1000,
        "states",
        "Those of one call, and of one commit. Live states wait for it: 3 ms, or 12 if each state starts a workflow.",
        "batch",
    )
    backlog_wait_s: float = _bound(
        20.0,
        "seconds",
        "So long a call with a backlog waits for its turn; clients wait 30 or longer.",
        "call",
    )
    backlog_waiting_calls_max: int = _bound(
        16, "calls", "A device needs two to lose no time; above it 503.", "device"
    )
    backlog_waiting_bytes_max: int = _bound(
        128 * MIB,
        "bytes",
        "The bodies of calls that wait. An owner may use as much as all leave free; above it 503.",
    )

    # The store.
    bulk_items_max: int = _bound(
        1000,
        "items",
        "Rows that array inserts write at a time: some 20 ms of the event loop with their commit. Owners take turns.",
    )
    bulk_waiting_calls_max: int = _bound(
        64,
        "calls",
        "A MiB of JSON each, about a second of work. Above it one of the owner with the most is 503.",
    )
    waiting_writes_max: int = _bound(
        2_048,
        "writes",
        "Some 0.15 s of work for one commit. Later calls get 503 at once, which costs a quarter of a call; otherwise "
        "each would wait for all, and at twice the server's capacity the wait would grow without end.",
    )
    journal_bytes_max: int = _bound(64 * MIB, "bytes", "Waiting writes are in memory; above it 503.")
    journal_batches_max: int = _bound(
        65_536, "batches", "Small batches cost more than their bytes; above it 503."
    )
    arrival_window_bytes: int = _bound(
        32 * MIB,
        "bytes",
        "So many bytes of reports are flushed at a time. More need memory, fewer write more to the disk.",
    )
    arrivals_bytes_max: int = _bound(
        256 * MIB, "bytes", "What is not flushed yet is in memory; above it 503 for what devices send."
    )
    arrival_flush_s: float = _bound(
        3600.0,
        "seconds",
        "What devices reported is flushed after this time also if it is little, and after a minute if 1,000 reports "
        "were removed.",
    )
    read_threads_max: int = _bound(
        4, "threads", "Half of them for one owner. They share the GIL with the event loop; more slow it down."
    )
    read_queue_length_max: int = _bound(
        64, "reads", "Waiting long reads. If it is full, one of the owner with the most is refused: 503."
    )
    read_cpu_s: float = _bound(
        10,
        "seconds",
        "Time that a read computes: 2 million rows, or 100,000 with 100 conditions. Then 400.",
        "read",
    )
    read_wall_s: float = _bound(
        60, "seconds", "The same with the time that it waits for the disk and for others. Then 503.", "read"
    )
    start_check_s: float = _bound(
        5.0, "seconds", "Pages of the store are verified before it is served: about 150 MB a second."
    )

    def __post_init__(self) -> None:
        _check_together(self)

    @classmethod
    def off(cls) -> Limits:
        """The defaults with every throttle disabled; all bounds and gates stay."""
        return cls().lifted()

    def lifted(self) -> Limits:
        """These limits with every throttle disabled."""
        rates: dict[str, Any] = {
            f.name: None for f in dataclasses.fields(self) if isinstance(f.default, Rate)
        }
        return dataclasses.replace(self, **rates)

    def override(self, changes: Mapping[str, object]) -> Limits:
        """These limits with changes by name: a number, or for a throttle `{calls=, window_s=}` or `"off"`.

        Raises SettingsError with the key, what is wrong and what would be right.
        """
        known = {f.name: f for f in dataclasses.fields(self)}
        values: dict[str, Any] = {}
        for name, given in changes.items():
            field = known.get(name)
            if field is None:
                raise SettingsError(name, "is not a limit", _suggestion(name, known))
            values[name] = _rate(name, given) if isinstance(field.default, Rate) else _number(field, given)
        return dataclasses.replace(self, **values)


def _rate(name: str, given: object) -> Rate | None:
    remedy = 'give {calls = 30, window_s = 15} or "off"'
    if given == "off" or given is None:
        return None
    if isinstance(given, Rate):
        return given
    if not isinstance(given, Mapping):
        raise SettingsError(name, f"is {given!r}, which is not a valid rate", remedy)
    if set(given) != {"calls", "window_s"}:
        raise SettingsError(name, f"has the keys {sorted(map(str, given))}", remedy)
    try:
        return Rate(given["calls"], given["window_s"])
    except SettingsError as error:
        raise error.under(f"{name}.") from None


def _number(field: dataclasses.Field[Any], given: object) -> float:
    whole = str(field.type) == "int"
    zero = field.metadata.get("zero", False)
    least = "0 or more" if zero else "more than 0"
    remedy = f"give {'a whole number' if whole else 'a number'} of {field.metadata['unit']}, {least}"
    # bool is an int to Python, but `mailbox_length_max = true` is a mistake.
    if isinstance(given, bool) or not isinstance(given, int if whole else (int, float)):
        raise SettingsError(field.name, f"is {given!r}", remedy)
    if not (0 < given < math.inf or (zero and given == 0)):
        raise SettingsError(field.name, f"is {given!r}", remedy)
    return given


def _suggestion(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else "the documentation lists the names"


# Throttles whose window is kept by an actor that is unloaded after actor_idle_s. (The windows of exports are
# longer; their owner checks `empty` before it deletes them.)
_HELD_BY_ACTORS: Final = (
    "send_state",
    "send_command",
    "set_connection_status",
    "mqtt_publish",
    "event_create",
    "virtual_button",
    "webhook_call",
    "endpoint_request",
    "verify_email",
)

_ORDERED: Final = (
    ("body_bytes_max", "journal_bytes_max"),
    ("link_frame_bytes_max", "journal_bytes_max"),
    ("body_bytes_max", "backlog_waiting_bytes_max"),
)


def _check_together(limits: Limits) -> None:
    """Refuse limits that contradict each other: a default above its maximum, a window longer than actor_idle_s."""
    for low, high in _ORDERED:
        if getattr(limits, low) > getattr(limits, high):
            raise SettingsError(
                low, f"is above {high} ({getattr(limits, high)})", "lower it or raise the other"
            )
    if 6 * limits.arrival_window_bytes > limits.arrivals_bytes_max:
        raise SettingsError(
            "arrival_window_bytes",
            f"is above a sixth of arrivals_bytes_max ({limits.arrivals_bytes_max}), which two windows may use",
            "lower it or raise the other",
        )
    backlog = limits.backlog_states
    if backlog is not None and backlog.calls < limits.backlog_batch_states_max:
        raise SettingsError(
            "backlog_states.calls",
            f"is below backlog_batch_states_max ({limits.backlog_batch_states_max}), which one call may bring",
            "raise it or lower the other",
        )
    for name in _HELD_BY_ACTORS:
        rate: Rate | None = getattr(limits, name)
        if rate is not None and rate.window_s > limits.actor_idle_s:
            raise SettingsError(
                f"{name}.window_s",
                f"is above actor_idle_s ({limits.actor_idle_s}), so an idle actor would forget its throttle",
                "raise actor_idle_s or shorten the window",
            )
