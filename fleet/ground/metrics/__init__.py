"""What a process counts and times, for Prometheus: one file for each thing that is measured, all in `catalogue`.

Everything belongs to the event loop's thread: no locks, and a measurement costs about as much as a dictionary entry.
"""
