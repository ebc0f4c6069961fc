"""`trunkline routes` and `trunkline openapi`: descriptions of the API."""

from __future__ import annotations

import json
import sys

import typer

from trunkline.http.routes import TABLE


def routes_command() -> None:
    """Print the route table: method, path, operation and scopes, of which a token needs one."""
    path_width = max(len(route.path) for route in TABLE.routes) + 2
    name_width = max(len(route.operation) for route in TABLE.routes) + 2
    for route in sorted(TABLE.routes, key=lambda route: (route.path, route.method)):
        scopes = " ".join(sorted(route.scopes)) or "(no token)"
        typer.echo(f"{route.method:8}{route.path:{path_width}}{route.operation:{name_width}}{scopes}")


def openapi_command() -> None:
    """Print the OpenAPI 3.1 document."""
    from trunkline.http.openapi.document import document
    from trunkline.http.version import VERSION

    sys.stdout.write(json.dumps(document(TABLE, VERSION), indent=2) + "\n")
