"""Everything of which the whole server has only so much: what a use costs, and whose share it takes.

This is the one list of it; the documents show it, and a test finds each such place in the source and fails for one that
has no row. What is added to the server and bounds something for all tenants gets a row here. Does not own the bounds
(`limits/table.py`, or the module itself) nor how they are shared (`core/runtime/owner_shares.py`).

An owner is the user who owns an application, or who founded the organization that owns it (`core/records/owners.py`).
"""

from __future__ import annotations

from typing import Final, NamedTuple


class ServerBound(NamedTuple):
    """What is bounded, what a use costs, by what, whose share a use takes, and the modules that make the bound.

    `limits` are names in `limits/table.py`; without one the bound is a constant of the module.
    """

    what: str
    price: str
    limits: tuple[str, ...]
    whose: str
    where: tuple[str, ...]


_HALF: Final = "Owner, in turns; at most half of the places. "

BOUNDS: Final = (
    ServerBound(
        "Long reads",
        "A thread while it computes",
        ("read_threads_max", "read_queue_length_max"),
        _HALF + "The threads of the store have no queue of their own before it.",
        ("actors/core/runtime/system.py", "store/env.py"),
    ),
    ServerBound(
        "Computations of workflows",
        "A thread while it computes",
        (),
        _HALF,
        ("actors/core/runtime/computing.py",),
    ),
    ServerBound("Pages of experiences", "A thread for a page", (), _HALF, ("http/experiences/pages.py",)),
    ServerBound(
        "Long bodies",
        "The one thread while one is decoded",
        (),
        "Owner, in turns.",
        ("http/calls/json_body.py",),
    ),
    ServerBound(
        "Hashes of passwords",
        "A core for 50 ms and 64 MiB",
        ("password_threads_max", "logins_checking_max"),
        "The address at logins to the API, otherwise the owner; in turns.",
        ("actors/people/accounts/passwords.py",),
    ),
    ServerBound(
        "Calls that begin in a pass of the event loop",
        "The loop for some 0.1 to 1 ms",
        (),
        "Owner, in turns; the address for calls without a token. An owner who is alone does not wait.",
        ("http/calls/dispatch.py",),
    ),
    ServerBound(
        "Runs of workflows",
        "A place from the first node to the last",
        ("flow_runs_max", "trigger_queue_length_max"),
        "Owner; at most half of the places. If triggers fill the queue, those of who has the most are dropped.",
        ("actors/workflows/triggers/queue.py",),
    ),
    ServerBound(
        "Turns of runs in the event loop",
        "The loop for a millisecond",
        (),
        "Owner, in turns.",
        ("actors/engine/share.py",),
    ),
    ServerBound(
        "Scripts",
        "A process while it computes",
        ("script_processes_max", "script_queue_length_max"),
        _HALF,
        ("actors/core/scripts/pool.py",),
    ),
    ServerBound(
        "Jobs",
        "A place from begin to end of an attempt",
        ("jobs_running_max", "jobs_waiting_length_max"),
        "Owner, in turns; for each job that runs one place stays free for others, and half of the queue.",
        ("actors/platform/jobs/queue.py",),
    ),
    ServerBound(
        "Notifications of jobs",
        "A connection for up to `outgoing_timeout_s`",
        ("outgoing_deliveries_max",),
        _HALF + "Mails and callbacks have places of their own.",
        ("actors/platform/jobs/runner.py",),
    ),
    ServerBound(
        "Notices of alarms",
        "A connection for up to `outgoing_timeout_s`",
        (),
        _HALF + "As many places as notifications of jobs have.",
        ("actors/data/events/alarm_sender.py",),
    ),
    ServerBound(
        "Uploads, downloads of files and of results",
        "A slot while it lasts",
        ("uploads_max", "file_downloads_max", "downloads_max"),
        "Owner, at most half of the slots; and address, at most a quarter.",
        (
            "actors/core/contents/slots.py",
            "actors/core/contents/uploads.py",
            "actors/core/contents/downloads.py",
            "actors/platform/jobs/results.py",
        ),
    ),
    ServerBound(
        "Pieces of files",
        "A thread for a piece",
        ("file_threads_max",),
        _HALF,
        ("actors/core/contents/contents.py",),
    ),
    ServerBound(
        "Bulk calls",
        "Its items until they are committed, some 10 ms a thousand",
        ("bulk_items_max", "bulk_waiting_calls_max"),
        "Owner, in turns, with a place for each item.",
        ("http/calls/dispatch.py",),
    ),
    ServerBound(
        "Connections that other machines pass on",
        "A TLS connection, and the loop for each of its pieces",
        ("connections_max",),
        "The address of the client, at the door that has accepted it.",
        ("http/processes/machine_port.py",),
    ),
    ServerBound(
        "Open streams",
        "A connection and its buffer",
        ("streams_max",),
        "Owner; at most half of the places. All of them need a token.",
        ("actors/core/runtime/streams.py",),
    ),
    ServerBound(
        "Connections that last: streams, links, MQTT clients, WebSockets of webhooks, callers who wait for workflows",
        "A connection for hours; for up to a minute while a caller waits",
        ("connections_max",),
        "Owner; at most half of all connections.",
        ("actors/core/runtime/system.py",),
    ),
    ServerBound(
        "Other connections",
        "A task and its buffers, until they are idle for `connection_idle_s`",
        ("connections_max",),
        "The address: when all are taken, an idle one of the address with the most ends for a new one. Not "
        "behind a proxy (`trust_forwarded_for`), whose address all have: there new ones are refused.",
        ("http/wire/engine.py",),
    ),
    ServerBound(
        "Connections of integrations",
        "A task and up to a message",
        ("integration_connections_max",),
        "Owner; at most half of the places. Others wait.",
        ("actors/connections/integrations/connections.py",),
    ),
    ServerBound(
        "Backlogs that wait",
        "Their bytes",
        ("backlog_waiting_bytes_max",),
        "Owner, in turns, then application; an owner may have as many as all leave free.",
        ("actors/fleet/devices/state/backlog.py",),
    ),
    ServerBound(
        "Lookups of names of hosts",
        "A thread, for half a minute if a name server does not answer",
        (),
        _HALF,
        ("actors/core/runtime/threads.py",),
    ),
    ServerBound(
        "Mails",
        "A thread, for up to `outgoing_timeout_s` for each answer of the mail server",
        (),
        _HALF,
        ("actors/core/runtime/threads.py",),
    ),
    ServerBound(
        "Contexts of TLS, certificates, compressed answers of others, signed logins",
        "A thread for milliseconds; half a second for the check of a large key",
        (),
        _HALF,
        ("actors/core/runtime/threads.py",),
    ),
    ServerBound("Pieces of results", "A thread for a piece", (), _HALF, ("actors/core/runtime/threads.py",)),
    ServerBound(
        "New private keys",
        "The one thread for up to a second",
        (),
        "Owner, in turns.",
        ("actors/core/runtime/threads.py",),
    ),
    ServerBound(
        "Devices that triggers of inactivity and alarms wait for",
        "300 bytes for each",
        ("inactivity_devices_max",),
        "Owner; at most half of them.",
        ("actors/fleet/devices/actor/inactivity.py",),
    ),
    ServerBound(
        "Actors in memory",
        "1.5 kB for each that works",
        ("actors_active_max",),
        "None: idle ones make room at once, and so many that work at a time are more than the server can serve.",
        ("actors/core/runtime/registry.py",),
    ),
    ServerBound(
        "Writes that wait for a commit",
        "Their bytes, for some milliseconds",
        ("waiting_writes_max", "journal_bytes_max", "journal_batches_max"),
        "None yet: in order of arrival; each commit takes all of them.",
        ("actors/core/runtime/system.py", "store/env.py"),
    ),
    ServerBound(
        "Reports that are not flushed",
        "Their bytes, until they are flushed",
        ("arrivals_bytes_max",),
        "None yet: in order of arrival; backlogs wait when half of it is used.",
        ("store/env.py",),
    ),
    ServerBound(
        "Results of jobs",
        "Their bytes, until they expire",
        ("job_results_bytes_max",),
        "Owner; at most half of them. Files of imports are there while their job lasts, one for an owner.",
        ("actors/platform/jobs/results.py", "actors/portability/bundles/import_files.py"),
    ),
    ServerBound(
        "Contents of files",
        "Their bytes",
        ("files_bytes_max",),
        "Owner: in the last tenth, the files of an owner have at most as many bytes as stay free. Besides, an "
        "application has at most `application_files_bytes_max`.",
        ("actors/core/contents/contents.py",),
    ),
    ServerBound(
        "Writing of archives",
        "A thread for a file",
        ("archive_put_files_max",),
        "None: each job has its own.",
        ("actors/portability/archives/slices.py",),
    ),
    ServerBound(
        "Calls that a door passes on and the owner has not taken",
        "Their bytes, of each a part of its body at most",
        (),
        "None yet: in order of arrival; from 8 MiB in a door on, further calls get 503. Shares are those of "
        "the owner of the data, for what it has taken.",
        ("http/processes/door.py",),
    ),
    ServerBound(
        "Pages of the console",
        "The one thread, once after a start",
        (),
        "None: nobody's data is in them.",
        ("http/site/site.py",),
    ),
    ServerBound(
        "Forty threads of the process, for all that has no places of its own",
        "A thread",
        (),
        "None: jobs and their notifications use them, which have shares of their own, and the server itself, also to "
        "move an application for the operator. Together they are fewer than the threads, so none waits.",
        (
            "actors/maintenance/foreign.py",
            "actors/maintenance/move_target.py",
            "actors/maintenance/sweep.py",
            "actors/portability/archives/jobs.py",
            "actors/portability/archives/slices.py",
            "actors/portability/archives/writing.py",
            "actors/portability/bundles/clone.py",
            "actors/portability/bundles/import_files.py",
            "actors/portability/bundles/import_jobs.py",
            "actors/platform/jobs/notifications.py",
            "actors/platform/jobs/results.py",
            "actors/core/outgoing/http_calls.py",
            "actors/presentation/dashboards/report_job.py",
            "http/hosting/tls_files.py",
            "store/flusher.py",
        ),
    ),
)

_CACHE: Final = "A cache: what is dropped is made again when somebody needs it."
_LOGGED: Final = "Lines of the log: what is left out is counted."

UNSHARED: Final[dict[str, str]] = {
    "admission_cache_length_max": _CACHE,
    "alexa_certificates_max": _CACHE,
    "backlog_length_max": "Connections that the system has not handed over: nobody knows yet whose they are.",
    "counted_fleets_max": _CACHE,
    "experience_certificates_max": _CACHE,
    "experience_sites_bytes_max": _CACHE,
    "head_cache_length_max": _CACHE,
    "logged_logins_per_minute_max": _LOGGED,
    "logged_turns_per_minute_max": _LOGGED,
    "login_windows_length_max": "Failures of addresses and accounts: those with the fewest are forgotten.",
    "outbox_length_max": "Mails of a server without a mail server, to try it out.",
    "public_answers_bytes_max": _CACHE,
    "public_dashboards_length_max": _CACHE,
    "token_cache_length_max": _CACHE,
    "traffic_applications_max": "Counts for the overview: those of an application begin again at zero.",
}
"""The other numbers of `limits/table.py` that bound something of the whole server, and why nobody has a share of it."""
