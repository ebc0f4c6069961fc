"""Experiences: the web pages and endpoints of an application, and the people who use them.

A request finds what serves it with few reads: the key of its domain or slug in `unique` has the application and the
record, whose `version` names the endpoints. They and their views are kept in memory (`sites.py`); `RouteTree` finds the
endpoint among them. Requests themselves are handled in `http/experiences/`.
"""
