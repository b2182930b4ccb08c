"""Pure codecs: bytes in, words out, and back. No socket, no clock, no Redis, no environment."""
