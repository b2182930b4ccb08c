"""Which shards this worker owns, and the order of work for each device."""
