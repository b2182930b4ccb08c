"""Questions of a client until they are answered, and the calls of tools on the way."""
