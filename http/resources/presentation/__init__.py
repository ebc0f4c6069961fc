"""Routes of experiences, dashboards, notebooks and the overview."""
