"""Who there is: users, organizations and their members, and the audit log of what they did."""
