"""Notebooks: their records and files, and the export of their inputs. This server executes no notebooks."""
