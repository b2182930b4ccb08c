"""What the firmware's application does with messages, buttons and states (contract 5)."""
