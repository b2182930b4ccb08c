"""Turns: an utterance until its answer is spoken and kept."""
