"""Our MQTT client: connection, session, publishing, the broker's address; and the REST API of EMQX."""
