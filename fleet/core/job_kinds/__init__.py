"""What is known of a job by its kind alone, one file for each kind."""
