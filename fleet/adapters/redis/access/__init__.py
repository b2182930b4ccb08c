"""Access control: owners of MACs, claims, policies, generations of passwords, revocations."""
