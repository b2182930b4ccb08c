"""A self-hosted server for fleets of voice devices."""

__version__ = "0.1.0"
