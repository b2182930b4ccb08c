"""Compiles agents into Redis, and tries them."""
