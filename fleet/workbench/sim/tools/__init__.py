"""The board, its tools, and the MCP server that offers them (contract 6)."""
