"""Experiences: the web pages and endpoints of an application, and the people who use them.

Nothing is served yet. The records are laid so that a request will find what serves it with few reads: the key of its
domain or slug in `unique` has the application and the record, whose `version` names the endpoints; `RouteTree` finds
the endpoint among them, and its record has the groups, the replies and the views.
"""
