"""Numbers and the machines that enforce them. No I/O, no trio, no clock: `now` is passed in."""
