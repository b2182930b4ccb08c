"""All roles as separate processes on this machine, and whether a rolling restart of them loses anything."""
