"""Lines of the documentation, pasted into a shell as a reader does it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import trio

from tests.e2e.server_process import OWNER, environment
from tests.patience import PATIENCE_S

SHELLS = [name for name in ("sh", "bash", "zsh") if shutil.which(name) is not None]
"""Those of this machine."""

# For a machine without curl: the few options that the printed lines use, in their meaning.
STAND_IN = f"""#!{sys.executable}
import argparse, json, urllib.parse, urllib.request
parser = argparse.ArgumentParser()
parser.add_argument("-s", action="store_true")
parser.add_argument("-N", action="store_true")
parser.add_argument("-H", action="append", default=[])
parser.add_argument("-G", action="store_true")
parser.add_argument("-d")
parser.add_argument("-o", default="/dev/stdout")
parser.add_argument("-X")
parser.add_argument("--data-urlencode")
parser.add_argument("-F", action="append", default=[])
parser.add_argument("-K")
parser.add_argument("url", nargs="?")
given = parser.parse_args()
headers = dict(header.split(": ", 1) for header in given.H)
body = None if given.d is None else given.d.encode()
url = given.url
parts = []
for line in open(given.K) if given.K else ():
    option, _, value = line.strip().partition(" = ")
    if option == "url":
        url = value
    else:
        name, _, text = json.loads(value).partition("=")
        parts.append((f'name="{{name}}"', "", text.encode()))
for part in given.F:
    name, _, file = part.partition("=@")
    file, _, type = file.partition(";type=")
    about = f'name="{{name}}"; filename="{{file}}"'
    with open(file, "rb") as opened:
        parts.append((about, f"Content-Type: {{type}}\\r\\n" if type else "", opened.read()))
if parts:
    headers["Content-Type"] = "multipart/form-data; boundary=stand-in"
    body = b""
    for about, type, data in parts:
        head = f"--stand-in\\r\\nContent-Disposition: form-data; {{about}}\\r\\n{{type}}\\r\\n"
        body += head.encode() + data + b"\\r\\n"
    body += b"--stand-in--\\r\\n"
if given.data_urlencode is not None:
    name, _, value = given.data_urlencode.partition("=")
    url += "?" + urllib.parse.urlencode([(name, value)])
request = urllib.request.Request(url, body, headers, method=given.X)
with urllib.request.urlopen(request) as answer, open(given.o, "wb") as output:
    while piece := answer.read1():
        output.write(piece)
        output.flush()
"""


def path_with_curl(tmp_path: Path) -> str:
    """The search path of the shell, with a stand-in where there is no curl."""
    path = os.environ["PATH"]
    if shutil.which("curl") is not None:
        return path
    stand_in = tmp_path / "bin" / "curl"
    stand_in.parent.mkdir()
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    return f"{stand_in.parent}{os.pathsep}{path}"


async def pasted(
    lines: list[str],
    path: str,
    until: bytes | None = None,
    shell_name: str = "sh",
    cwd: Path | None = None,
) -> bytes:
    """What a shell prints for these lines: all of it, or as much as has `until` in it."""
    shell = await trio.lowlevel.open_process(
        [shell_name, "-e"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment({"PATH": path, "no_proxy": "*"}),
        start_new_session=True,
        cwd=cwd,
    )
    assert shell.stdin is not None
    assert shell.stdout is not None
    said = b""
    try:
        with trio.fail_after(PATIENCE_S):
            await shell.stdin.send_all("\n".join(lines).encode() + b"\n")
            await shell.stdin.aclose()
            async for piece in shell.stdout:
                said += piece
                if until is not None and until in said:
                    os.killpg(shell.pid, signal.SIGTERM)
                    until = None
            await shell.wait()
    finally:
        if shell.returncode is None:
            os.killpg(shell.pid, signal.SIGKILL)
            with trio.CancelScope(shield=True):
                await shell.wait()
    return said


def with_owner(lines: str, url: str) -> str:
    """The lines with the address of a server and the login of its owner in place of those that a document shows."""
    for shown, here in (
        ("http://127.0.0.1:8080", url),
        ("admin@localhost", OWNER["TRUNKLINE_ADMIN_EMAIL"]),
        ("PASSWORD", OWNER["TRUNKLINE_ADMIN_PASSWORD"]),
    ):
        assert lines.count(shown) == 1, shown
        lines = lines.replace(shown, here)
    return lines
