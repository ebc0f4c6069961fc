"""What people see: the overview, experiences, dashboards with their reports, notebooks."""
