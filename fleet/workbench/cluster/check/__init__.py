"""Whether a rolling restart loses anything: conversations go on meanwhile, and their results are judged."""
