"""Announcements: the clips of their texts, and their deliveries to devices."""
