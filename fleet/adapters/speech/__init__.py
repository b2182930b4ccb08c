"""Sound: Opus, voice activity, recognition and voices."""
