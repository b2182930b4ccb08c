"""The steps from one revision of the tables to the next, one file each."""
