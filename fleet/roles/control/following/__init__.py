"""Following events: who follows what, and from where the events come."""
