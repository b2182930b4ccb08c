"""Chat models and what they are given."""
