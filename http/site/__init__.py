"""The pages for people: the root page, the documents of the API and the console, as they are sent."""
