"""Which device is simulated: build of the firmware, timing, identity."""
