"""The connection to Redis, Sentinel or a Cluster: one place through which every command goes."""
