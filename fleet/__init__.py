"""A self-hosted server for fleets of voice devices."""

DISTRIBUTION = "fleet-voice"
"""The name that pip installs. The project `fleet` of the package index is not ours."""
