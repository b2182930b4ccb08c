"""Tools that run on the server: built-in ones and those of MCP servers."""
