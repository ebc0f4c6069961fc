"""Dashboards: blocks that a client displays, parameters that a viewer sets, and reports by mail."""
