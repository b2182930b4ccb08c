"""Pure codecs between bytes and messages. No socket, no clock, no Redis, no environment."""
