"""A client of control: what a program does with a fleet over the REST API.

A function such as `devices.search` makes a `Call`; `FleetClient` sends it and waits, `AsyncFleetClient` awaits it.
"""
