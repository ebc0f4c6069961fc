"""Routes of users, logins, organizations and audit logs."""
