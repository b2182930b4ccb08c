"""The query language for devices: text → terms → a tree of typed conditions (docs/reference/queries.md)."""
