"""The demo: a server as an operator starts it, a simulated device that talks to it, and a verdict."""
