"""What the users of `scripts/bench turn-ends` say: the thresholds were chosen with one half, the other judges."""

from collections.abc import Mapping, Sequence
from typing import Final

COMMANDS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "choose": {
        "en": (
            "set the volume to thirty percent",
            "turn on the light in the kitchen",
            "set an alarm for seven in the morning",
            "what is the weather like in london",
            "turn the brightness down to ten percent",
            "add milk and bread to my shopping list",
            "what is the battery level of the device",
            "translate good morning into french",
            "close the curtains and turn off the lamp",
            "set a timer for fifteen minutes",
        ),
        "zh": (
            "把音量调到百分之三十",
            "打开客厅的灯",
            "明天早上七点叫我起床",
            "今天北京的天气怎么样",
            "给我讲一个关于小龙的故事",
            "帮我拍一张桌子的照片",
            "把主题换成深色",
            "第一个登上月球的人是谁",
            "从这里到机场有多远",
            "设置一个十五分钟的定时器",
        ),
    },
    "judge": {
        "en": (
            "play some quiet piano music",
            "remind me to water the plants on sunday",
            "how many people live in germany",
            "switch the display to dark mode",
            "tell me a story about a little dragon",
            "who was the first man on the moon",
            "make the screen a bit brighter",
            "wake me up at half past six tomorrow",
            "how far is it from here to the airport",
            "send a message to my brother",
            "lower the temperature by two degrees",
            "what time does the library close today",
            "take a photo and tell me what you see",
            "spell the word necessary for me",
            "start the washing machine after ten",
        ),
        "zh": (
            "播放一首安静的钢琴曲",
            "提醒我星期天给花浇水",
            "德国现在有多少人口",
            "把屏幕切换到夜间模式",
            "讲一个小兔子的故事给我听",
            "北京到上海坐火车要多久",
            "把客厅的窗帘拉上",
            "明天下午会不会下雨",
            "帮我查一下附近的超市",
            "给妈妈打一个电话",
            "把空调的温度调低两度",
            "图书馆今天几点关门",
            "三百六十五乘以二十四等于多少",
            "用英文怎么说我很高兴",
            "十分钟以后关掉电视",
        ),
    },
}
