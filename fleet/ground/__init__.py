"""What every part stands on: settings, metrics, traces, log, errors, tasks."""
