"""From sentences to packets: voice, playout, answers that a device missed."""
