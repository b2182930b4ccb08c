"""The LLM Gateway WebSocket API, docs/protocol/gateway.md."""
