"""The faces that firmware can show, found from the emoji in an answer."""

from typing import Final

# The first emoji of each line is the one that firmware itself shows for the name.
_EMOJI: Final = {
    "neutral": "😶😐😑🫥🤖",
    "happy": "🙂😊😀😃😄☺🥳🎉👍🌞😺🤗",
    "laughing": "😆😁😅😸",
    "funny": "😂🤣😹",
    "sad": "😔😢😞🙁☹😟🥺😥💔😿",
    "angry": "😠😡🤬👿😤😾",
    "crying": "😭",
    "loving": "😍🥰❤💕💖💗💓💞💘💝🧡💛💚💙💜😻🫶",
    "embarrassed": "😳🫣🙈😬",
    "surprised": "😯😮😲🙀🤩",
    "shocked": "😱😨😰🤯😧😦",
    "thinking": "🤔🧐🤨💭",
    "winking": "😉",
    "cool": "😎🤘🕶🔥",
    "relaxed": "😌😇🧘🍵☕",
    "delicious": "🤤😋🍰🍜🍕",
    "kissy": "😘😗😙😚💋😽",
    "confident": "😏💪🏆",
    "sleepy": "😴😪🥱💤🌙",
    "silly": "😜😝😛🤪🤡",
    "confused": "🙄😕🫤😖😵🤷",
}
EMOTIONS: Final = tuple(_EMOJI)
"""The 21 names that the firmware's asset packs share (device contract, section 5.2)."""
_NAMES: Final = {emoji: name for name, emojis in _EMOJI.items() for emoji in emojis}


def emotion_of(text: str) -> str | None:
    """Return the emotion of the first emoji that has one, or None when the text holds none."""
    return next((name for char in text if (name := _NAMES.get(char))), None)
