"""`fleet doctor`: what is wrong with a site or a device, and what to do about it. One file for each thing examined."""
