"""Benchmarks that anybody can run: what a packet, a hello, a call costs on this machine (docs/performance.md)."""
