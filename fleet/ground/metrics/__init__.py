"""Metrics of a process, for Prometheus: one file for each subject; `catalogue` has all of them.

Only the event loop's thread uses them: there are no locks, and a measurement costs about as much as a dictionary entry.
"""
