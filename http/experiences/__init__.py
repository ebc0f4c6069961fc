"""Experiences over HTTP: which requests are for an experience, what is read of them, and how they are answered."""
