"""Data tables: the actor, columns, rows, queries over rows, exports."""
