"""What an application stores beside states: data tables, events, messages of topics, files."""
