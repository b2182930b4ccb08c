"""MACs as the numbers that are the keys of the tables: their order is that of the texts."""


def mac_number(mac: str) -> int:
    """Return the number of a canonical MAC."""
    return int(mac.replace(":", ""), 16)


def mac_text(number: int) -> str:
    """Return the canonical MAC of a number."""
    digits = f"{number:012x}"
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))
