"""Sessions and what belongs to one: conversation, pending calls, replies, its end."""
