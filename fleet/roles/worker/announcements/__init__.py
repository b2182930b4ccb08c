"""Announcements to devices of the owned shards."""
