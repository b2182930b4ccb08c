"""The edge role: the audio of its sessions, over one UDP socket."""
