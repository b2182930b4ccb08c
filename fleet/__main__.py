"""`python -m fleet` and the command `fleet`."""

import sys

from fleet.ground.errors import install_hint


def main() -> None:
    try:
        from fleet import cli
    except ModuleNotFoundError as missing:
        sys.exit(f"fleet: the package {missing.name} is missing: {install_hint('server')}")
    cli.main()


if __name__ == "__main__":
    main()
