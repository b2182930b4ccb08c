"""What every part of the device shares: state machine, main loop, context."""
