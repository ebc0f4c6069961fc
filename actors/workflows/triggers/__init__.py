"""Triggers of workflows: which there are, their records in the batches of their causes, and the queue of runs."""
