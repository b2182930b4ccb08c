"""Whether a rolling restart loses anything: conversations that go on meanwhile, and a judge over what came of them."""
