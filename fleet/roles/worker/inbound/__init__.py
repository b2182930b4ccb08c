"""What comes in: messages of devices, messages of edges, edges that died."""
