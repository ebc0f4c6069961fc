"""Applications, what becomes of them as a whole, and the jobs that calls queue."""
