"""Jobs: work that a call queues and the server does later. Records, runner, results and notifications."""
