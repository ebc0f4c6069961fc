"""Experiences: the web pages and endpoints of an application, and the people who use them."""
