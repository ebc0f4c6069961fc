"""Values that every package uses: errors, ids, timestamps, the clock, the base classes of messages.

Imports no other package of `actors/`.
"""
