"""What jobs do with devices: one file for each kind, and how the leader asks them."""
