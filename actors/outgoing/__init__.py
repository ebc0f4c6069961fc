"""What leaves the server by itself: mail and HTTP calls, with their fences."""
