"""The api role: what devices and operators ask over HTTP."""
