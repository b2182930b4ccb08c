"""Each role, built from the settings; one module a role, so that a process imports only its own role."""
