"""What each process that serves has: its sockets, its certificate, its log, and what it prints."""
