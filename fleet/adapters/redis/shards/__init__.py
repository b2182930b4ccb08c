"""Shards: leases and their owners, the inboxes of shards and edges, the live edges."""
