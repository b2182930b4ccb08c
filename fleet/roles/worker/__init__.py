"""The worker role: owns shards, answers devices, runs turns and tool calls. All its state is in Redis."""
