"""The way to everything outside the process: Redis, networks, files, speech, chat models, tools."""
