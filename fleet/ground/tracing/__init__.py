"""Traces: what became of one turn, across edge and worker. Off unless a collector is named."""
