"""Inputs of a worker: messages of devices, events of edges, dead edges."""
