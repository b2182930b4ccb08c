"""The process of the embedded broker; run as a script, `rumqttd.py CONFIG`. It has no way to stop but to be ended."""

import logging
import sys


def main() -> None:
    from iotcore import Broker  # here, so that the program without the extra can import this module

    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("rumqttd").setLevel(logging.CRITICAL)  # it writes an error record for every packet
    Broker(config_path=sys.argv[1]).run_forever()


if __name__ == "__main__":
    main()
