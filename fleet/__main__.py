"""`python -m fleet` is the command `fleet`."""

from fleet.cli import main

main()
