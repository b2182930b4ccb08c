"""Tool calls of devices: begun once, awaited, ended in exactly one outcome."""
