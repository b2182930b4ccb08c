"""Files of the operator, and files that commands and servers on one machine share."""
