"""Topics: the messages of an application, published by the API and by workflows, and their streams."""
