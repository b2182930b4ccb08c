"""The checks of the device contract against any server, with scripted models behind it."""
