"""Who may do what: tokens and certificates to principals, and the rights of who acts later."""
