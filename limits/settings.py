"""The settings for operators, and how they are read.

Owns the names, types, defaults and descriptions of all settings, and their precedence: command line, then
environment (`TRUNKLINE_PORT`), then the configuration file, then the default. The file's `[limits]` table
changes numbers of `limits/table.py`; any other table groups settings: `nats` in `[cluster]` is `cluster_nats`. Does
not own reading the file or the environment (both are passed in), nor the effect of a setting.

An unknown name is an error, because a server with a misspelt setting would otherwise silently run with the
default. The exception are the variables by which a container platform announces a service named `trunkline`: nobody
wrote them. A secret appears in no repr and no error.

The file is long because all settings stand in one table.
"""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from trunkline.limits.errors import SettingsError
from trunkline.limits.sso import SsoDomain, sso_domains
from trunkline.limits.table import Limits

ENV_PREFIX: Final = "TRUNKLINE_"
CONFIG_VARIABLE: Final = "TRUNKLINE_CONFIG"
"""The variable with the path of the configuration file. It is not a setting, so `load_settings` skips it."""

_SERVICE_VARIABLE: Final = re.compile(
    r"TRUNKLINE_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)",
    re.ASCII,
)
_SERVICE_URL: Final = re.compile(r"(tcp|udp|sctp)://", re.ASCII)
_ORIGIN: Final = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:\d{1,5})?", re.ASCII)
_HOST_NAME: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*", re.ASCII)
_DOMAIN_ENTRY: Final = re.compile(r"(\*|(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*)(=[0-9a-f]{24})?", re.ASCII)
_TILES: Final = re.compile(
    r"https?://[a-z0-9.-]+(:[0-9]{1,5})?/(?=\S*\{z\})(?=\S*\{x\})(?=\S*\{y\})([^\s{};,'\"]|\{[xyz]\})+",
    re.ASCII,
)
"""The host goes into a header, so nothing may be in it that would end it there."""
_BUCKET: Final = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_.-]+)*/?", re.ASCII)
_NATS_SERVER: Final = re.compile(r"(nats|tls)://([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:\d{1,5})?", re.ASCII)
_ADDRESS: Final = re.compile(r"(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-fA-F:]+\]):\d{1,5}", re.ASCII)
_NODE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", re.ASCII)
_CLUSTER_URL_CHARS_MAX: Final = 100
"""It is told as the reason of a close frame, which has 123 bytes."""
_KEY: Final = re.compile(r"[0-9a-f]{48}", re.ASCII)
_HIDDEN: Final = "***"
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


def _setting(default: object, description: str, *, secret: bool = False, **bounds: object) -> Any:
    metadata = {"description": description, "secret": secret, **bounds}
    return dataclasses.field(default=default, repr=not secret, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The values of all settings. The metadata of each field holds its description and its bounds."""

    data_dir: str = _setting("./trunkline-data", "The directory that holds everything Trunkline keeps.")
    encryption_keys_file: str | None = _setting(
        None, "The file with the encryption keys of stored secrets. Default: encryption-keys in data_dir."
    )
    blobs: str | None = _setting(
        None,
        "Where the contents of files are, and with a log the results of jobs: a bucket such as s3://bucket/prefix, at "
        "AWS or at s3_endpoint, or a folder that all machines of a log reach, such as /srv/plant/contents. Default: "
        "the folder contents in data_dir.",
    )
    blobs_region: str | None = _setting(
        None, "The region of that bucket. Default: AWS_DEFAULT_REGION, or us-east-1."
    )
    blobs_access_key: str | None = _setting(
        None,
        "The id of the access key for that bucket. Default: AWS_ACCESS_KEY_ID, or what the machine offers.",
    )
    blobs_secret_key: str | None = _setting(None, "The secret of blobs_access_key.", secret=True)
    host: str = _setting("127.0.0.1", "The address to listen on; 0.0.0.0 or :: for every interface.")
    port: int = _setting(
        8080, "The TCP port to listen on; 0 lets the system choose.", minimum=0, maximum=65_535
    )
    mqtt_port: int | None = _setting(
        None,
        "The TCP port for MQTT, such as 1883; 0 lets the system choose. Default: none.",
        minimum=0,
        maximum=65_535,
    )
    mqtt_tls_port: int | None = _setting(
        None,
        "The TCP port for MQTT over TLS, such as 8883, with the certificate of certfile. Default: none.",
        minimum=0,
        maximum=65_535,
    )
    mqtt_anonymous_key: str | None = _setting(
        None,
        "An access key, without its secret: MQTT clients without a password may do what it allows. For closed "
        "networks only. Default: they are refused.",
    )
    certfile: str | None = _setting(
        None, "PEM file with the certificate chain; with keyfile, the server speaks TLS."
    )
    keyfile: str | None = _setting(None, "PEM file with the private key of the certificate.")
    ca_certs: str | None = _setting(
        None, "PEM file with the authorities of client certificates; with it, clients are asked for one."
    )
    client_certificates: str = _setting(
        "required",
        "With ca_certs: whether every client needs a certificate, or may present one.",
        choices=("required", "optional"),
    )
    trust_forwarded_for: bool = _setting(
        False, "Take the client's address from X-Forwarded-For (behind a proxy)."
    )

    cors_origins: str | None = _setting(
        None,
        "The origins whose pages may call the API from a browser, separated by spaces, such as "
        "https://app.example.com; * for all.",
    )
    http2_prior_knowledge: bool = _setting(
        False, "Also accept HTTP/2 without TLS, from clients that begin with it (such as a proxy)."
    )
    processes: int = _setting(
        1,
        "The number of processes: one owns the data, each further one is a door, which serves clients and passes on "
        "their calls; 0: as many as the machine has cores.",
        minimum=0,
        maximum=64,
    )
    engine: str = _setting(
        "fast",
        "The implementation of HTTP: our own, or Hypercorn as it is, which is slower, has none of the bounds on "
        "connections, and can be stopped by a single client: for comparisons only, on a loopback address.",
        choices=("fast", "stock"),
    )
    hot_rows: bool = _setting(
        True, "Handle the most frequent calls before Quart; off sends them through it, for comparisons only."
    )

    metrics_for: str = _setting(
        "local",
        "Who may read /metrics: operators with their tokens, with local also whoever asks from this machine, or all.",
        choices=("operators", "local", "all"),
    )

    log_level: str = _setting(
        "info", "The lowest level that is logged.", choices=("debug", "info", "warning", "error")
    )
    log_format: str = _setting("console", "The format of log lines.", choices=("console", "json"))
    access_log: bool = _setting(False, "Log every request, at some cost in throughput.")

    map_size_bytes: int = _setting(
        64 * 2**30, "Address space reserved for the store, in bytes; it doubles when full.", minimum=2**20
    )
    store_size_max_bytes: int | None = _setting(
        None, "The store's quota, in bytes; above it writes get 507. Default: the disk's size.", minimum=2**20
    )

    cluster_nats: str | None = _setting(
        None,
        "The NATS servers that keep the log of this server, separated by spaces, such as nats://10.0.0.1:4222, the "
        "nearest first: several machines follow it, and one of them serves. Default: one machine, without a log.",
    )
    cluster_name: str = _setting("trunkline", "The name of the log, the same for all machines of one server.")
    cluster_node: str | None = _setting(None, "The name of this machine in the log, which no other one has.")
    cluster_address: str | None = _setting(
        None,
        "Where the other machines reach this one, such as 10.0.0.1:8470; it listens there for them only. Default: any "
        "port at host.",
    )
    cluster_url: str | None = _setting(
        None,
        "Where clients reach this machine, such as https://a.plant.example.com. Links and MQTT clients that ask for "
        "the machine that serves their data are told this. Default: they are told nothing.",
    )
    cluster_silence_ms: int = _setting(
        1500,
        "How long the machine that serves is not heard before another one takes its place, in milliseconds.",
        minimum=1250,  # longer than a lease: store/replicated_journal.py
        maximum=60_000,
    )
    cluster_replicas: int = _setting(
        3,
        "How many of the NATS servers keep the log, when it is made; 1 is for trials.",
        minimum=1,
        maximum=5,
    )
    cluster_user: str | None = _setting(None, "The user for the NATS servers, if they require one.")
    cluster_password: str | None = _setting(None, "The password of cluster_user.", secret=True)
    cluster_seed: str | None = _setting(
        None, "The seed of an nkey for the NATS servers, instead of cluster_user.", secret=True
    )
    cluster_ca_certs: str | None = _setting(
        None,
        "PEM file with the authorities of the NATS servers, for addresses with tls://. Default: the system's.",
    )

    sync_delay_ms: int = _setting(
        0,
        "Milliseconds by which each commit takes longer, to simulate a slower disk (for load tests).",
        minimum=0,
    )
    disk_writes_per_s: int = _setting(
        0,
        "Writes a second of a simulated disk, for which commits have to wait (for load tests); 0: any number.",
        minimum=0,
    )

    admin_email: str | None = _setting(None, "The first account, created when the data directory has none.")
    admin_password: str | None = _setting(None, "The first account's password.", secret=True)
    token_ttl_s: int = _setting(
        86_400, "Lifetime of a login token, in seconds, if the login requests none; 0: no expiry.", minimum=0
    )

    templates_dir: str | None = _setting(
        None, "A folder with application templates, in addition to those that come with the server."
    )

    archives: str | None = _setting(
        None, "The folder of archives that applications keep with the server. Default: archives in data_dir."
    )
    archive_format: str = _setting(
        "csv", "The format of archives; parquet needs the library pyarrow.", choices=("csv", "parquet")
    )

    s3_endpoint: str | None = _setting(
        None, "The URL of a service that is compatible with S3, for all buckets; default: AWS."
    )

    experience_suffix: str = _setting(
        "localhost",
        "What follows the slug of an experience in the name of its host: farm.localhost for the slug farm.",
    )
    experience_domains: str | None = _setting(
        None,
        "The names that may be domains of experiences, separated by spaces: www.example.com, *.example.com for all "
        "names below one, * for all (needs public_url); with =ID behind it only for the application with this id. "
        "Default: none.",
    )
    public_url: str | None = _setting(
        None,
        "The URL by which clients reach this server, for links to files and in mails; default: the address it listens "
        "on, which is of no use where that is 0.0.0.0 or ::.",
    )
    map_tiles: str | None = _setting(
        None,
        "Where maps of dashboards get their tiles: a URL with {z}, {x} and {y}, such as "
        "https://tiles.example.com/{z}/{x}/{y}.png. Browsers of readers load them from there. Default: none; maps show "
        "outlines of land.",
    )
    map_attribution: str | None = _setting(
        None, "What maps say about the origin of their tiles; their provider says what it must be."
    )
    smtp_host: str | None = _setting(
        None, "The mail server; without one, mail is kept as files in the outbox of the data directory."
    )
    smtp_port: int = _setting(587, "The port of the mail server.", minimum=1, maximum=65_535)
    smtp_tls: str = _setting(
        "starttls",
        "The encryption to the mail server: STARTTLS, TLS from the start, or none.",
        choices=("starttls", "tls", "none"),
    )
    smtp_from: str = _setting("trunkline@localhost", "The sender of mails.")
    smtp_user: str | None = _setting(None, "The user name for the mail server, if it requires one.")
    smtp_password: str | None = _setting(None, "The password of smtp_user.", secret=True)
    smtp_password_file: str | None = _setting(None, "A file with the password, instead of smtp_password.")
    sendgrid_url: str = _setting(
        "https://api.sendgrid.com",
        "The beginning of the URLs of SendGrid's API, to which workflows give mails of their authors' accounts.",
    )
    callback_private_networks: bool = _setting(
        False,
        "Also allow callbacks of jobs, connections of integrations, and requests of workflows to private, loopback and "
        "link-local addresses.",
    )

    codehost_url: str | None = _setting(
        None,
        "The URL by which a code host names the e-mail addresses of the bearer of an access token, for logins.",
    )
    sso: Mapping[str, SsoDomain] = dataclasses.field(
        default_factory=dict, metadata={"description": "Domains with single sign-on: the file's [sso] table."}
    )

    throttles: bool = _setting(
        True, "Enforce the throttles; off disables all of them, even those set in [limits] (for load tests)."
    )
    limits: Limits = dataclasses.field(
        default=Limits(), repr=False, metadata={"description": "Changed numbers: the file's [limits] table."}
    )

    def __post_init__(self) -> None:
        for field in _FIELDS.values():
            _check(field, getattr(self, field.name), field.name)
        _check_pair(self, "admin_email", "admin_password")
        _check_pair(self, "certfile", "keyfile")
        _check_pair(self, "blobs_access_key", "blobs_secret_key")
        if self.blobs is not None and not (self.blobs.startswith("/") or _BUCKET.fullmatch(self.blobs)):
            raise SettingsError(
                "blobs",
                f"is {self.blobs!r}",
                "give a bucket such as s3://bucket/prefix, or a folder such as /srv/plant",
            )
        if self.smtp_user is None and (self.smtp_password or self.smtp_password_file):
            raise SettingsError(
                "smtp_user", "is not set although there is a password", "set it or leave both out"
            )
        if self.smtp_user is not None and (self.smtp_password is None) == (self.smtp_password_file is None):
            raise SettingsError(
                "smtp_password", "and smtp_password_file: there must be one of them for smtp_user", "set one"
            )
        if "@" not in self.smtp_from or not self.smtp_from.isprintable():
            raise SettingsError(
                "smtp_from", f"is {self.smtp_from!r}", "give an e-mail address such as trunkline@example.com"
            )
        if self.public_url is not None and not _begins_links(self.public_url):
            raise SettingsError(
                "public_url",
                f"is {self.public_url.rpartition('@')[2]!r}",  # without a password
                "give a URL such as https://devices.example.com, without a user, ? and #",
            )
        if self.map_tiles is not None and _TILES.fullmatch(self.map_tiles) is None:
            raise SettingsError(
                "map_tiles",
                f"is {self.map_tiles!r}",
                "give a URL with {z}, {x} and {y}, such as https://tiles.example.com/{z}/{x}/{y}.png",
            )
        _check_experience_hosts(self)
        if self.s3_endpoint is not None and not self.s3_endpoint.startswith(("http://", "https://")):
            raise SettingsError(
                "s3_endpoint", f"is {self.s3_endpoint!r}", "give a URL such as https://storage.example.com"
            )
        if not _keeps_secrets(self.sendgrid_url):
            raise SettingsError(
                "sendgrid_url",
                f"is {self.sendgrid_url!r}",
                "give a URL with https, or one of this computer, since API keys are sent to it",
            )
        if self.codehost_url is not None and not _keeps_secrets(self.codehost_url):
            raise SettingsError(
                "codehost_url",
                f"is {self.codehost_url!r}",
                "give a URL that begins with https://, since tokens are sent to it",
            )
        if self.engine == "stock" and not _is_loopback(self.host):
            raise SettingsError(
                "engine", f"is stock although host is {self.host!r}", "use stock only on 127.0.0.1 or ::1"
            )
        if self.engine == "stock" and self.processes != 1:
            raise SettingsError(
                "engine", "is stock although there are several processes", "leave one of them out"
            )
        for origin in (self.cors_origins or "").split():
            if origin != "*" and _ORIGIN.fullmatch(origin) is None:
                raise SettingsError(
                    "cors_origins",
                    f"has {origin!r}",
                    "give origins such as https://app.example.com, in lower case and without a path, or *",
                )
        if self.ca_certs is not None and self.certfile is None:
            raise SettingsError("certfile", "is not set although ca_certs is", "set it and keyfile")
        _check_mqtt(self)
        _check_cluster(self)


def _check_cluster(settings: Settings) -> None:
    """What a server on several machines needs."""
    servers = (settings.cluster_nats or "").split()
    for server in servers:
        if _NATS_SERVER.fullmatch(server) is None:
            raise SettingsError(
                "cluster_nats",
                f"has {server.rpartition('@')[2]!r}",
                "give addresses such as nats://10.0.0.1:4222, without a password",
            )
    if len({*servers}) < len(servers):
        raise SettingsError("cluster_nats", "names a server twice", "name each server once")
    for name in ("cluster_name", "cluster_node"):
        value = getattr(settings, name)
        if value is not None and _NODE.fullmatch(value) is None:
            raise SettingsError(name, f"is {value!r}", "give a name of a to z, 0 to 9 and -, such as node-1")
    _check_pair(settings, "cluster_user", "cluster_password")
    if settings.cluster_user is not None and settings.cluster_seed is not None:
        raise SettingsError("cluster_seed", "is set although cluster_user is", "leave one of them out")
    if not servers:
        alone = ("node", "address", "url", "user", "seed", "ca_certs")
        for name in (f"cluster_{each}" for each in alone):
            if getattr(settings, name) is not None:
                raise SettingsError("cluster_nats", f"is not set although {name} is", "name the NATS servers")
        return
    if settings.cluster_node is None:
        raise SettingsError("cluster_node", "is not set although cluster_nats is", "name this machine")
    if settings.blobs is None:
        raise SettingsError(
            "blobs",
            "is not set although cluster_nats is",
            "give a bucket or a folder, which all machines of the log reach",
        )
    url = settings.cluster_url
    if url is not None and (not _begins_links(url) or len(url) > _CLUSTER_URL_CHARS_MAX):
        raise SettingsError(
            "cluster_url",
            f"is {url.rpartition('@')[2]!r}",  # without a password
            "give a URL such as https://a.plant.example.com, without a user, ? and #, of at most "
            f"{_CLUSTER_URL_CHARS_MAX} characters",
        )
    address = settings.cluster_address
    if address is None and settings.host in ALL_ADDRESSES:
        raise SettingsError(
            "cluster_address",
            f"is not set although cluster_nats is, and host is {settings.host}",
            "give the address at which the other machines reach this one, such as 10.0.0.1:8470",
        )
    if address is not None and (
        _ADDRESS.fullmatch(address) is None or address.startswith(("0.0.0.0:", "[::]:"))
    ):
        raise SettingsError(
            "cluster_address", f"is {address!r}", "give an IP address with a port, such as 10.0.0.1:8470"
        )


def _check_mqtt(settings: Settings) -> None:
    """What the ports of MQTT need."""
    if settings.mqtt_tls_port is not None and settings.certfile is None:
        raise SettingsError("certfile", "is not set although mqtt_tls_port is", "set it and keyfile")
    if settings.engine == "stock" and (settings.mqtt_port, settings.mqtt_tls_port) != (None, None):
        raise SettingsError("engine", "is stock although there is a port for MQTT", "leave one of them out")
    taken: dict[int, str] = {}
    for name in ("port", "mqtt_port", "mqtt_tls_port"):
        port = getattr(settings, name)
        if port and port in taken:  # of 0 the system makes one that is free
            raise SettingsError(name, f"is {port}, as {taken[port]} is", "give each a port of its own")
        taken[port] = name
    key = settings.mqtt_anonymous_key
    if key is not None and _KEY.fullmatch(key) is None:
        raise SettingsError(
            "mqtt_anonymous_key", f"is {key!r}", "give the text of an access key: 48 hexadecimal digits"
        )


def _check_experience_hosts(settings: Settings) -> None:
    """The hosts of experiences must not be those of the API."""
    if _HOST_NAME.fullmatch(settings.experience_suffix) is None:
        raise SettingsError(
            "experience_suffix",
            f"is {settings.experience_suffix!r}",
            "give the name of a host in lower case, such as pages.example.com",
        )
    if settings.experience_suffix != "localhost" and settings.public_url is None:
        raise SettingsError(
            "public_url",
            "is not set although experience_suffix is",
            "set it, so that no slug takes the name of this server",
        )
    for entry in (settings.experience_domains or "").split():
        if _DOMAIN_ENTRY.fullmatch(entry) is None:
            raise SettingsError(
                "experience_domains",
                f"has {entry!r}",
                "give names in lower case such as www.example.com, *.example.com or www.example.com=ID",
            )
        if entry.partition("=")[0] == "*" and settings.public_url is None:
            raise SettingsError(
                "public_url",
                f"is not set although experience_domains has {entry!r}",
                "set it, so that nobody takes the name of this server",
            )


def _keeps_secrets(url: str) -> bool:
    """Whether what is sent to a URL stays between the two sides: by TLS, or on this machine."""
    parsed = urlsplit(url)
    if parsed.scheme == "http":
        return _is_loopback(parsed.hostname or "")
    return parsed.scheme == "https" and bool(parsed.hostname)


def _begins_links(url: str) -> bool:
    """Whether a path can be appended to a URL."""
    try:
        parsed = urlsplit(url)
        has_host = bool(parsed.hostname) and parsed.port != 0
    except ValueError:
        return False
    return parsed.scheme in ("http", "https") and has_host and set("?#@ ").isdisjoint(url)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


ALL_ADDRESSES: Final = ("0.0.0.0", "::")  # noqa: S104
"""Where a server may listen, and nobody can be reached."""
TABLES: Final = frozenset({"limits", "sso"})
"""The settings that are tables of the file."""

_FIELDS: Final = {field.name: field for field in dataclasses.fields(Settings) if field.name not in TABLES}


def load_settings(
    *, toml_text: str | None, environ: Mapping[str, str], overrides: Mapping[str, object]
) -> Settings:
    """Return the settings; for each, the first of overrides, environment, file and default that has it wins.

    An override that is None and an empty variable count as not given. Raises SettingsError for an unknown
    name or a wrong value in any source, even if another source would win.
    """
    values: dict[str, Any] = {}
    limits = Limits()
    for name, key, given in _of_tables(_parsed(toml_text)):
        if name == "limits":
            limits = _limits(given)
        elif name == "sso":
            values[name] = sso_domains(given)
        elif name in values:
            raise SettingsError(key, f"is given although {name} is", "leave one of them out")
        else:
            values[name] = _check(_field(name, key), given, key)
    for variable, text in environ.items():
        if not variable.startswith(ENV_PREFIX) or variable == CONFIG_VARIABLE:
            continue
        if _announces_service(variable, text):
            continue
        field = _field_of_variable(variable)
        if text.strip():
            values[field.name] = _check(field, _from_text(field, text), variable)
    for name, given in overrides.items():
        field = _field(name, name)
        if given is not None:
            values[name] = _check(field, given, name)
    if not values.get("throttles", True):
        limits = limits.lifted()
    return Settings(limits=limits, **values)


def service_variables(environ: Mapping[str, str]) -> list[str]:
    """The variables by which a container platform announces services; `load_settings` ignores them.

    Kubernetes and Docker links set them for each service: with one named `trunkline`, `TRUNKLINE_SERVICE_HOST` and
    `TRUNKLINE_PORT=tcp://10.0.0.1:8080`; with one named `trunkline-api`, `TRUNKLINE_API_SERVICE_HOST`.
    """
    return sorted(variable for variable, text in environ.items() if _announces_service(variable, text))


def _announces_service(variable: str, text: str) -> bool:
    if variable.startswith(ENV_PREFIX) and variable.endswith("_PORT") and _SERVICE_URL.match(text):
        return True
    return _SERVICE_VARIABLE.fullmatch(variable) is not None


def _parsed(toml_text: str | None) -> dict[str, Any]:
    try:
        return tomllib.loads(toml_text or "")
    except tomllib.TOMLDecodeError as error:
        # The parser's message quotes at most a key or one character, so it contains no secret.
        raise SettingsError(
            "the configuration file", f"is not valid TOML: {error}", "correct it there"
        ) from None


def _of_tables(file: Mapping[str, Any]) -> Iterator[tuple[str, str, object]]:
    """The name, the key in the file and the value of each setting, those without a table of theirs first."""
    for name, given in sorted(file.items(), key=lambda item: isinstance(item[1], Mapping)):
        members = [field for field in _FIELDS if field.startswith(f"{name}_")]
        if not isinstance(given, Mapping) or not members:
            yield name, name, given
            continue
        for member, value in given.items():
            if f"{name}_{member}" not in members and member in _FIELDS:
                raise SettingsError(
                    f"{name}.{member}", "is not a setting", f"write {member} before the first table"
                )
            yield f"{name}_{member}", f"{name}.{member}", value


def _limits(given: object) -> Limits:
    if not isinstance(given, Mapping):
        raise SettingsError("limits", "is not a table", "write a [limits] section")
    try:
        return Limits().override(given)
    except SettingsError as error:
        raise error.under("limits.") from None


def _field(name: str, key: str) -> dataclasses.Field[Any]:
    if name not in _FIELDS:
        raise SettingsError(key, "is not a setting", _suggestion(name, (*_FIELDS, *TABLES)))
    return _FIELDS[name]


def _field_of_variable(variable: str) -> dataclasses.Field[Any]:
    names = {ENV_PREFIX + name.upper(): name for name in _FIELDS}
    if (table := variable.removeprefix(ENV_PREFIX).lower()) in TABLES:
        lifted = f", or lift the throttles by {ENV_PREFIX}THROTTLES=false" if table == "limits" else ""
        raise SettingsError(
            variable, "is a table of the configuration file", f"write [{table}] there{lifted}"
        )
    if variable not in names:
        raise SettingsError(variable, "is not a setting", _suggestion(variable, names))
    return _FIELDS[names[variable]]


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]}?" if close else "the documentation lists the names"


def _from_text(field: dataclasses.Field[Any], text: str) -> object:
    """Convert the text of a variable to the type of the field, if possible; `_check` validates the value."""
    kind = _kind(field)
    if kind is str:
        return text
    plain = text.strip().lower()
    if kind is bool:
        return True if plain in _TRUE else False if plain in _FALSE else text
    try:
        return int(plain)
    except ValueError:
        return text


def _kind(field: dataclasses.Field[Any]) -> type:
    # Annotations are text here (`from __future__ import annotations`): "int", "str | None".
    return {"str": str, "int": int, "bool": bool}[str(field.type).split(" ")[0]]


def _check(field: dataclasses.Field[Any], given: object, key: str) -> object:
    """Return the value if it is valid for the field, else raise SettingsError for `key`."""
    optional = str(field.type).endswith("None")
    if given is None and optional:
        return given
    kind, bounds = _kind(field), field.metadata
    problem = f"is {_HIDDEN if bounds['secret'] else repr(given)}"
    if not isinstance(given, kind) or (kind is int and isinstance(given, bool)):
        raise SettingsError(
            key, problem, {str: "give text", int: "give a whole number", bool: "give true or false"}[kind]
        )
    if isinstance(given, str):
        if not given.strip():
            raise SettingsError(key, "is empty", "give text or leave it out")
        choices: tuple[str, ...] = bounds.get("choices", ())
        if choices and given not in choices:
            raise SettingsError(key, problem, f"give one of {', '.join(choices)}")
    elif isinstance(given, int) and kind is int:
        low, high = bounds.get("minimum"), bounds.get("maximum")
        if low is not None and given < low:
            raise SettingsError(key, problem, f"give at least {low}")
        if high is not None and given > high:
            raise SettingsError(key, problem, f"give at most {high}")
    return given


def _check_pair(settings: Settings, one: str, other: str) -> None:
    """Check two settings that must be set together."""
    for given, missing in ((one, other), (other, one)):
        if getattr(settings, given) is not None and getattr(settings, missing) is None:
            raise SettingsError(missing, f"is not set although {given} is", "set both or neither")
