"""A rule-based chat endpoint in OpenAI's shape, for demos without a key or a network. It is not a language model."""
