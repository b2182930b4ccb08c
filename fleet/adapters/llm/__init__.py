"""Chat models and their requests."""
