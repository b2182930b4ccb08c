"""Turns: from an utterance until its answer is spoken and in the history."""
