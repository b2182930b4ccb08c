"""Shards: leases and their owners, the inboxes between shards and edges, the edges that live."""
