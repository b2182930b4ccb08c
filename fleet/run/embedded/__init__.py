"""A broker and a Redis that pip installs, as child processes, and the keys that `fleet up` makes for itself."""
