"""Microphone, encoder, playback queue, loudspeaker and what is heard of them (contract 4.2 and 4.3)."""
