"""Shared basics: settings, metrics, traces, log, errors, tasks."""
