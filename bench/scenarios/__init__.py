"""The loads that the bench knows, one module each: what is called, and what has to be there afterwards."""
