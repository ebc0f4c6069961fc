"""Settings: precedence, errors for misspelt names, and secrets that are never shown."""

from __future__ import annotations

import dataclasses
import traceback
from typing import Any

import pytest

from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import TABLES, Settings, load_settings, service_variables
from trunkline.limits.table import Limits, Rate

PASSWORD = "correct horse battery staple"
NAMES = [field.name for field in dataclasses.fields(Settings) if field.name not in TABLES]


def load(toml: str | None = None, environ: dict[str, str] | None = None, **overrides: object) -> Settings:
    return load_settings(toml_text=toml, environ=environ or {}, overrides=overrides)


def test_nothing_given_means_the_defaults() -> None:
    settings = load()
    assert settings == Settings()
    assert (settings.host, settings.port, settings.data_dir) == ("127.0.0.1", 8080, "./trunkline-data")
    assert (settings.log_level, settings.log_format, settings.access_log) == ("info", "console", False)
    assert (settings.map_size_bytes, settings.store_size_max_bytes) == (64 * 2**30, None)
    assert settings.limits == Limits()


@pytest.mark.parametrize("field", dataclasses.fields(Settings), ids=lambda field: field.name)
def test_every_setting_is_described(field: dataclasses.Field[Any]) -> None:
    assert field.metadata["description"].endswith((".", "(for load tests)."))


def test_overrides_win_over_environment_over_file_over_default() -> None:
    toml, environ = (
        "port = 1\nhost = 'file'\nlog_level = 'error'",
        {"TRUNKLINE_PORT": "2", "TRUNKLINE_HOST": "env"},
    )
    settings = load(toml, environ, port=3)
    assert (settings.port, settings.host, settings.log_level, settings.log_format) == (
        3,
        "env",
        "error",
        "console",
    )


def test_what_is_not_given_does_not_win() -> None:
    assert load("port = 1", {"TRUNKLINE_PORT": " "}, port=None).port == 1


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_can_come_from_the_environment(name: str) -> None:
    text = {"int": "2097152", "bool": "on"}.get(str(Settings.__annotations__[name]).split(" ")[0], "info")
    special = {"log_format": "json", "port": "80", "engine": "stock", "smtp_port": "25", "smtp_tls": "tls"}
    special |= {"public_url": "https://devices.example.com", "smtp_from": "me@example.com"}
    special |= {"codehost_url": "https://api.example.com/user", "sendgrid_url": "https://mail.example.com"}
    special |= {"client_certificates": "optional", "mqtt_anonymous_key": "0" * 48}
    special |= {"map_tiles": "https://tiles.example.com/{z}/{x}/{y}.png"}
    special |= {"processes": "4", "mqtt_port": "1883", "mqtt_tls_port": "8883"}
    special |= {"blobs": "s3://bucket/prefix", "s3_endpoint": "https://storage.example.com"}
    special |= {"archive_format": "parquet", "metrics_for": "operators"}
    special |= {"cluster_address": "[::1]:8470", "cluster_silence_ms": "2000"}
    special |= {"cluster_url": "https://a.example.com"}
    special |= {"cluster_nats": "nats://10.0.0.1 tls://[::1]:4223", "cluster_replicas": "5"}
    special |= {"cors_origins": "https://app.example.com http://localhost:5173"}
    text = special.get(name, text)
    together = (
        ("admin_email", "admin_password"),
        ("certfile", "keyfile", "ca_certs"),
        ("smtp_user", "smtp_password"),
        ("blobs_access_key", "blobs_secret_key"),
        ("cluster_user", "cluster_password"),
    )
    environ = {f"TRUNKLINE_{other.upper()}": "x" for group in together if name in group for other in group}
    if name == "experience_suffix":
        environ["TRUNKLINE_PUBLIC_URL"] = "https://devices.example.com"
    if name == "mqtt_tls_port":
        environ |= {"TRUNKLINE_CERTFILE": "x", "TRUNKLINE_KEYFILE": "x"}
    if name == "smtp_password_file":
        environ["TRUNKLINE_SMTP_USER"] = "x"
    if name.startswith("cluster_"):
        environ |= {"TRUNKLINE_CLUSTER_NATS": "nats://a", "TRUNKLINE_CLUSTER_NODE": "a"}
        environ["TRUNKLINE_BLOBS"] = "s3://bucket"
    settings = load(None, {**environ, f"TRUNKLINE_{name.upper()}": text})
    assert str(getattr(settings, name)) == ("True" if text == "on" else text)


@pytest.mark.parametrize(("text", "value"), [("1", True), ("Yes", True), ("off", False), ("FALSE", False)])
def test_switches_read_the_usual_words(text: str, value: bool) -> None:
    assert load(None, {"TRUNKLINE_ACCESS_LOG": text}).access_log is value


@pytest.mark.parametrize(
    ("toml", "environ", "overrides", "sentence"),
    [
        ("prot = 1", {}, {}, "prot is not a setting; did you mean port?"),
        (None, {"TRUNKLINE_PROT": "1"}, {}, "TRUNKLINE_PROT is not a setting; did you mean TRUNKLINE_PORT?"),
        (
            None,
            {"TRUNKLINE_LIMITS": "off"},
            {},
            "TRUNKLINE_LIMITS is a table of the configuration file; write [limits] there, or lift",
        ),
        (
            None,
            {"TRUNKLINE_SSO": "x"},
            {},
            "TRUNKLINE_SSO is a table of the configuration file; write [sso] there",
        ),
        (None, {}, {"prot": 1}, "prot is not a setting; did you mean port?"),
        (None, {}, {"prot": None}, "prot is not a setting; did you mean port?"),
        ("qqqqqq = 1", {}, {}, "qqqqqq is not a setting; the documentation lists the names"),
        ("port = '80'", {}, {}, "port is '80'; give a whole number"),
        ("port = true", {}, {}, "port is True; give a whole number"),
        ("port = 1.5", {}, {}, "port is 1.5; give a whole number"),
        ("port = 65536", {}, {}, "port is 65536; give at most 65535"),
        ("mqtt_port = 8080", {}, {}, "mqtt_port is 8080, as port is; give each a port of its own"),
        (
            "mqtt_port = 1883\nmqtt_tls_port = 1883\ncertfile = 'c'\nkeyfile = 'k'",
            {},
            {},
            "mqtt_tls_port is 1883, as mqtt_port is; give each a port of its own",
        ),
        ("map_size_bytes = 1", {}, {}, "map_size_bytes is 1; give at least 1048576"),
        (None, {"TRUNKLINE_PORT": "eighty"}, {}, "TRUNKLINE_PORT is 'eighty'; give a whole number"),
        (None, {"TRUNKLINE_ACCESS_LOG": "maybe"}, {}, "TRUNKLINE_ACCESS_LOG is 'maybe'; give true or false"),
        (None, {"TRUNKLINE_LOG_LEVEL": "loud"}, {}, "TRUNKLINE_LOG_LEVEL is 'loud'; give one of debug, info"),
        ("host = ''", {}, {}, "host is empty; give text or leave it out"),
        ("port = ", {}, {}, "the configuration file is not valid TOML: Invalid value (at end of document)"),
        ("limits = 1", {}, {}, "limits is not a table; write a [limits] section"),
        ("[cluster]\nnode = 1", {}, {}, "cluster.node is 1; give text"),
        ("[cluster]\nnods = 'a'", {}, {}, "cluster.nods is not a setting; did you mean cluster_node?"),
        ("[cluster]\nport = 80", {}, {}, "cluster.port is not a setting; write port before the first table"),
        (
            "[cluster]\nnode = 'a'\n[a]",
            {},
            {},
            "a is not a setting; the documentation lists the names",
        ),
        (
            "cluster.node = 'a'\ncluster_node = 'a'",
            {},
            {},
            "cluster.node is given although cluster_node is; leave one of them out",
        ),
        ("[port]\nmqtt = 80", {}, {}, "port is {'mqtt': 80}; give a whole number"),
        ("[limits]\nsend_stat = 'off'", {}, {}, "limits.send_stat is not a limit; did you mean send_state?"),
        ("[limits]\nsend_state = {calls = 0, window_s = 1}", {}, {}, "limits.send_state.calls is 0;"),
        ("admin_email = 'a@b.c'", {}, {}, "admin_password is not set although admin_email is"),
        ("admin_password = 'x'", {}, {}, "admin_email is not set although admin_password is"),
        ("certfile = 'c.pem'", {}, {}, "keyfile is not set although certfile is; set both or neither"),
        ("keyfile = 'k.pem'", {}, {}, "certfile is not set although keyfile is"),
        ("ca_certs = 'a.pem'", {}, {}, "certfile is not set although ca_certs is; set it and keyfile"),
        (
            "cluster_nats = 'a:4222'",
            {},
            {},
            "cluster_nats has 'a:4222'; give addresses such as nats://10.0.0.1",
        ),
        ("cluster_nats = 'nats://me:pw@a'", {}, {}, "cluster_nats has 'a'; give addresses"),
        (
            "cluster_node = 'a'",
            {},
            {},
            "cluster_nats is not set although cluster_node is; name the NATS servers",
        ),
        (
            "cluster_seed = 's'",
            {},
            {},
            "cluster_nats is not set although cluster_seed is; name the NATS servers",
        ),
        ("cluster_node = 'Node 1'", {}, {}, "cluster_node is 'Node 1'; give a name of a to z, 0 to 9 and -"),
        ("cluster_nats = 'nats://a'", {}, {}, "cluster_node is not set although cluster_nats is; name this"),
        (
            "cluster_nats = 'nats://a'\ncluster_node = 'a'",
            {},
            {},
            "blobs is not set although cluster_nats is; give a bucket",
        ),
        (
            "cluster_nats = 'nats://a'\ncluster_node = 'a'\nblobs = 's3://bucket'\ncluster_address = 'plant:8470'",
            {},
            {},
            "cluster_address is 'plant:8470'; give an IP address with a port, such as 10.0.0.1:8470",
        ),
        (
            "cluster_nats = 'nats://a'\ncluster_node = 'a'\nblobs = 's3://bucket'\ncluster_address = '0.0.0.0:8470'",
            {},
            {},
            "cluster_address is '0.0.0.0:8470'; give an IP address with a port, such as 10.0.0.1:8470",
        ),
        (
            "cluster_nats = 'nats://a nats://a'\ncluster_node = 'a'\nblobs = 's3://bucket'",
            {},
            {},
            "cluster_nats names a server twice; name each server once",
        ),
        (
            "cluster_nats = 'nats://a'\ncluster_node = 'a'\nblobs = 's3://bucket'\nhost = '0.0.0.0'",
            {},
            {},
            "cluster_address is not set although cluster_nats is, and host is 0.0.0.0; give the address",
        ),
        ("cluster_user = 'u'", {}, {}, "cluster_password is not set although cluster_user is"),
        (
            "cluster_user = 'u'\ncluster_password = 'p'\ncluster_seed = 's'",
            {},
            {},
            "cluster_seed is set although cluster_user is; leave one",
        ),
        (
            "engine = 'stock'\nhost = '0.0.0.0'",
            {},
            {},
            "engine is stock although host is '0.0.0.0'; use stock",
        ),
        ("smtp_user = 'u'", {}, {}, "smtp_password and smtp_password_file: there must be one of them for"),
        ("smtp_password = 'x'", {}, {}, "smtp_user is not set although there is a password; set it or"),
        ('smtp_from = "a@b\\nBcc: x"', {}, {}, "smtp_from is 'a@b"),
        ("map_tiles = 'https://tiles.example.com/{z}/{x}.png'", {}, {}, "map_tiles is 'https://tiles"),
        ("map_tiles = 'https://a.example; x/{z}/{x}/{y}'", {}, {}, "map_tiles is 'https://a.example; x"),
        (
            f"[cluster]\nnats = 'nats://n:4222'\nnode = 'a'\nurl = 'https://{'a' * 93}'",
            {},
            {"blobs": "/x"},
            "cluster_url is",
        ),
        ("public_url = 'devices.example.com'", {}, {}, "public_url is 'devices.example.com'; give a URL"),
        ("public_url = 'https://a.example/x?y=1'", {}, {}, "public_url is 'https://a.example/x?y=1'; give"),
        ("public_url = 'https://a.example#x'", {}, {}, "public_url is 'https://a.example#x'; give a URL"),
        ("public_url = 'https://u:pw@a.example'", {}, {}, "public_url is 'a.example'; give a URL such as"),
        ("public_url = 'https://:8443'", {}, {}, "public_url is 'https://:8443'; give a URL such as"),
        ("public_url = 'https://a:x'", {}, {}, "public_url is 'https://a:x'; give a URL such as"),
        (
            "experience_domains = 'WWW.example.com'",
            {},
            {},
            "experience_domains has 'WWW.example.com'; give names",
        ),
        ("experience_domains = 'a.example=7'", {}, {}, "experience_domains has 'a.example=7'; give names"),
        (
            "experience_domains = '*'",
            {},
            {},
            "public_url is not set although experience_domains has '*'; set it",
        ),
        (
            "experience_suffix = 'pages.example'",
            {},
            {},
            "public_url is not set although experience_suffix is; set",
        ),
        ("port = 70000", {"TRUNKLINE_PORT": "1"}, {}, "port is 70000; give at most 65535"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_sentence(
    toml: str | None, environ: dict[str, str], overrides: dict[str, object], sentence: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(toml, environ, **overrides)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_other_variables_are_ignored() -> None:
    environ = {"PATH": "/bin", "TRUNKLINES": "x", "TRUNKLINE_CONFIG": "/etc/trunkline.toml"}
    assert load(None, environ) == Settings()


def test_the_file_changes_limits() -> None:
    limits = load(
        "[limits]\nsend_state = {calls = 5, window_s = 1}\nvirtual_button = 'off'\nuploads_max = 3"
    ).limits
    assert (limits.send_state, limits.virtual_button, limits.uploads_max) == (Rate(5, 1), None, 3)


def test_a_table_of_the_file_groups_settings() -> None:
    table = "blobs = '/srv'\n[cluster]\nnats = 'nats://10.0.0.1:4222'\nnode = 'a'\n[mqtt]\nport = 1883"
    flat = "blobs = '/srv'\ncluster_nats = 'nats://10.0.0.1:4222'\ncluster_node = 'a'\nmqtt_port = 1883"
    assert load(table) == load(flat)
    assert load(table, {"TRUNKLINE_MQTT_PORT": "1884"}).mqtt_port == 1884


def test_throttles_off_lifts_them_all_whatever_the_file_says() -> None:
    toml = "[limits]\nsend_state = {calls = 5, window_s = 1}\nuploads_max = 3"
    limits = load(toml, {"TRUNKLINE_THROTTLES": "off"}).limits
    assert limits == Limits.off().override({"uploads_max": 3})


def test_the_system_chooses_a_port_for_each() -> None:
    assert load(port=0, mqtt_port=0).mqtt_port == 0


def test_a_settings_object_built_by_hand_is_checked_too() -> None:
    with pytest.raises(SettingsError, match="port is -1; give at least 0"):
        Settings(port=-1)


def test_a_password_never_shows() -> None:
    environ = {"TRUNKLINE_ADMIN_EMAIL": "a@b.c", "TRUNKLINE_ADMIN_PASSWORD": PASSWORD}
    settings = load(None, environ)
    assert settings.admin_password == PASSWORD
    for text in (repr(settings), str(settings), f"{settings}"):
        assert PASSWORD not in text


@pytest.mark.parametrize(
    ("toml", "environ"),
    [
        (None, {"TRUNKLINE_ADMIN_PASSWORD": PASSWORD}),  # without the e-mail address
        (None, {"TRUNKLINE_ADMIN_PASSWROD": PASSWORD}),
        (f"admin_password = ['{PASSWORD}']", {}),
        (f"admin_pasword = '{PASSWORD}'", {}),
        (f"admin_password = '{PASSWORD}", {}),  # the string never ends
        (f"admin_password = {PASSWORD}", {}),  # no quotes
    ],
)
def test_no_error_quotes_a_password(toml: str | None, environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as caught:
        load(toml, environ)
    error = caught.value
    assert PASSWORD not in str(error)
    assert PASSWORD not in "".join(traceback.format_exception_only(error))


SERVICE = {
    "TRUNKLINE_SERVICE_HOST": "10.96.0.12",
    "TRUNKLINE_SERVICE_PORT": "8080",
    "TRUNKLINE_SERVICE_PORT_HTTP": "8080",
    "TRUNKLINE_PORT": "tcp://10.96.0.12:8080",
    "TRUNKLINE_PORT_8080_TCP": "tcp://10.96.0.12:8080",
    "TRUNKLINE_PORT_8080_TCP_PROTO": "tcp",
    "TRUNKLINE_PORT_8080_TCP_PORT": "8080",
    "TRUNKLINE_PORT_8080_TCP_ADDR": "10.96.0.12",
}
"""What Kubernetes sets in every container beside a service named `trunkline`."""


@pytest.mark.parametrize("service", ["TRUNKLINE", "TRUNKLINE_SMTP", "TRUNKLINE_EDGE_2"])
def test_variables_that_announce_services_are_ignored(service: str) -> None:
    announced = {name.replace("TRUNKLINE", service, 1): text for name, text in SERVICE.items()}
    environ = {**announced, "TRUNKLINE_HOST": "0.0.0.0", "HOME": "/root", "SERVICE_PORT": "1"}
    assert load(None, environ) == Settings(host="0.0.0.0")
    assert service_variables(environ) == sorted(announced)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("TRUNKLINE_PORT", "80 80"),
        ("TRUNKLINE_PORT", "http://10.96.0.12"),
        ("TRUNKLINE_HOSTS", "tcp://10.96.0.12:8080"),
        ("TRUNKLINE_SERVICE", "trunkline"),
        ("TRUNKLINE_SERVICE_HOSTS", "10.96.0.12"),
        ("TRUNKLINE_PORT_TCP", "8080"),
        ("TRUNKLINE_PORT_8080_TCP_ADDRESS", "10.96.0.12"),
    ],
)
def test_other_variables_are_refused_all_the_same(variable: str, text: str) -> None:
    assert service_variables({variable: text}) == []
    with pytest.raises(SettingsError, match=f"^{variable} is "):
        load(None, {variable: text})
