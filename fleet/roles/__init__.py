"""The roles of a server, one package each: worker, edge, gateway, api, front, control."""
