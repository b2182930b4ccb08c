"""What lies between device and server: delays, faults, the HTTPS client."""
