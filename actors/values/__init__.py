"""Values that every package uses: errors, ids, times, the clock, the base of messages. Imports no other package."""
