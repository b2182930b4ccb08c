"""Traces of turns across edge and worker. Off unless FLEET_OTLP_ENDPOINT names a collector."""
