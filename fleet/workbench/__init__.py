"""What tries the server out: the simulated device, conformance, benchmarks, the demo. No role imports it."""
