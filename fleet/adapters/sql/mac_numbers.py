"""MACs as the numbers that are the keys of the tables: their order is that of the texts."""


def mac_number(mac: str) -> int:
    """Return the number of a canonical MAC."""
    return int(mac.replace(":", ""), 16)


def mac_text(number: int) -> str:
    """Return the canonical MAC of a number."""
    return number.to_bytes(6).hex(":")
