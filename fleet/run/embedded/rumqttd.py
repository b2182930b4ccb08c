"""The process of the embedded broker, a script: `rumqttd.py CONFIG`. It runs until it is killed."""

import logging
import sys


def main() -> None:
    from iotcore import Broker  # imported late: this module must be importable without the extra

    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("rumqttd").setLevel(logging.CRITICAL)  # it writes an error record for every packet
    Broker(config_path=sys.argv[1]).run_forever()


if __name__ == "__main__":
    main()
