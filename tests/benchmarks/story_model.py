"""A chat model over HTTP that answers every question with the text that it was given."""

import asyncio
import re

from fleet.workbench.bench.chat_http import END, HEAD, ChatModel, chunk

STORIES = {
    "en": (
        "The old harbour town lies between two green hills. Every morning the fishermen bring their boats back before"
        " the sun is up. On the market square they sell what they have caught during the night. In summer many visitors"
        " walk along the narrow streets and look at the painted doors. When winter comes the town is quiet again, and"
        " the children play in the snow behind the church. At night the lighthouse sends its beam across the water."
    ),
    "zh": (
        "从前有一座小城，坐落在两座青山之间。每天早上，渔民们在日出之前把船开回港口。他们在市场上卖掉夜里打到的鱼。"
        "夏天有很多游客来这里，沿着狭窄的街道散步。冬天来了，小城又安静下来，孩子们在教堂后面玩雪。到了晚上，"
        "灯塔的光照在海面上，船员们知道自己快要回家了。"
    ),
}
"""Answers of about 20 s, by language."""
QUESTIONS = {"en": "Tell me a story, please.", "zh": "请给我讲一个故事。"}
REPLIES = {"en": "All right, I heard you.", "zh": "好的，我听到了。"}


def story(language: str, sounds: int) -> str:
    """Return as many sentences of 3 to 4 s as so many sounds over them need, which come 4 s apart."""
    return "".join(re.findall(r"[^.。]*[.。]", STORIES[language])[: sounds + 2])


class StoryModel(ChatModel):
    """The model while it runs; `text` is its next answer."""

    def __init__(self) -> None:
        super().__init__()
        self.text = REPLIES["en"]

    async def answer(self, _: bytes, __: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + chunk(self.text) + END)
