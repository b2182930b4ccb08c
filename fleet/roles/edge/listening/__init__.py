"""From packets to utterances: order, voice activity, the end of an utterance, recognition."""
