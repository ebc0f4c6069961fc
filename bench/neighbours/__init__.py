"""A quiet tenant beside one that does its worst: who is slowed down, and who gets errors for another's load."""
