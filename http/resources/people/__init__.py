"""Routes of users, log-ins, organizations and audit logs."""
