"""Jobs: work that a call only queues. Their records, the runner, their results and notifications."""
