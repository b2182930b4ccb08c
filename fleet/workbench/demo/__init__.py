"""The demo: starts a server as an operator does, lets a simulated device talk to it, and checks the answers."""
