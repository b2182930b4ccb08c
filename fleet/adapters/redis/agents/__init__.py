"""The agents that control has compiled for workers, edges and gateways."""
