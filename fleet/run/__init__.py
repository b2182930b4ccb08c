"""Each role, put together from the settings; a module for each, because a process imports what it runs."""
