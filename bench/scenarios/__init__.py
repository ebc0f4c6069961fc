"""The scenarios of the bench, one module each: the calls of a load, and what must be stored afterwards."""
