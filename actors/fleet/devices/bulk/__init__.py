"""Changes of many devices, and removal of what they reported."""
