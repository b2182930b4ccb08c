"""Announcements and reminders: the clips of texts, deliveries to devices, what is due when."""
