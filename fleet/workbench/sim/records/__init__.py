"""What a simulation keeps: the journal of steps, turns, the audit of the server, and the report."""
