"""Work that one control process does for all: copies of devices."""
