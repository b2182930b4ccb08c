"""Text of answers: cut into sentences, cleaned for speech, and the few phrases of the server."""
