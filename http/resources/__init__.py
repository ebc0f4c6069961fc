"""The route tables: one module of rows for each noun. `trunkline routes` prints them all."""
