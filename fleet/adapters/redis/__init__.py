"""Everything that fleet keeps in Redis or Valkey; no other package knows it."""
