"""JSON messages between device and server, read and written as firmware does."""
