"""Data of each device: presence, tools, reports, traces; and the registry of all devices."""
