"""SQL: what people decide about the fleet and look up later. Only the control role and its commands open it."""
