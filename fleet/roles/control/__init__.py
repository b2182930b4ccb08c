"""The role control: what people decide about the fleet, behind a REST API."""
