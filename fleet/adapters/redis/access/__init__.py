"""Who may connect: owners of MACs, claims, policies, generations of passwords, revocations."""
