"""Many simulated devices in a process: each has a connection, tools and a fate, and no audio."""
