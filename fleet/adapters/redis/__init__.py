"""All access to Redis or Valkey; no other package accesses it."""
