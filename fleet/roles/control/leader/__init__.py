"""Work that one control process does for all: copies of devices, events, jobs, desired states, alerts, tidying."""
