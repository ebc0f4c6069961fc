"""Load tools that speak to a running server over the wire only, as a stranger would.

No module here imports another room: what the tools know of the server is its public HTTP interface.
"""
