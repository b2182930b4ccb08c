import pytest

from fleet.core.text.phantoms import find_phantom, is_made_of

LEAKED = "请打开灯，调低音量，播放音乐，设置闹钟。"


@pytest.mark.parametrize(
    "text",
    [
        "Thanks for watching!",
        "thank you for watching",
        "请不吝点赞 订阅 转发 打赏支持明镜与点点栏目",
        "谢谢观看。",
        "字幕由Amara.org社区提供",
        "字幕志愿者 李宗盛",
        "Subtitles by the Amara.org community",
        "[Music]",
    ],
)
def test_words_of_subtitles_alone_are_a_phantom(text: str) -> None:
    assert find_phantom(text) == "phrase"


@pytest.mark.parametrize(
    "text", ["鸡鸡鸡鸡", "鸡，鸡，鸡，鸡，鸡。", "la la la la la", "谢谢大家谢谢大家谢谢大家谢谢大家"]
)
def test_one_syllable_again_and_again_is_a_phantom(text: str) -> None:
    assert find_phantom(text) == "repetition"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "谢谢",
        "Thank you",
        "thanks for watching my cat yesterday",
        "打开字幕",
        "字幕太小了",
        "看看看",
        "no no no no",
        "不不不不",
        "哈哈哈哈哈",
        "8888",
        "二二二二",
        "一二一二一二一二",
        "我说鸡鸡鸡鸡是什么",
        "turn on the light",
    ],
)
def test_what_somebody_may_say_is_kept(text: str) -> None:
    assert find_phantom(text) is None


def test_clauses_of_a_prompt_are_found_in_any_order_without_their_punctuation() -> None:
    for text in ("播放音乐。", "音量，播放", LEAKED, "请打开灯，设置闹钟。"):
        assert is_made_of(text, LEAKED), text
    for text in ("播放歌曲", "播放音乐，谢谢", "。", ""):
        assert not is_made_of(text, LEAKED), text
    assert not is_made_of("播放", "")
