"""A scripted device: it does what a check says, byte for byte, and keeps all that it gets."""
