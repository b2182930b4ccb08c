from fleet.workbench.demo_llm import prompt_cache
from fleet.workbench.demo_llm.prompt_cache import PromptCache


def test_the_longest_beginning_that_an_earlier_prompt_had_is_found() -> None:
    cache = PromptCache()
    assert [cache.reuse(prompt) for prompt in ("abcdef", "abcxyz", "abcdxx", "abcdef", "zabcdef", "", "abcdefgh")] == [
        *(0, 3, 4, 6, 0, 0, 6)
    ]


def test_old_prompts_are_dropped() -> None:
    cache = PromptCache()
    cache.reuse("first")
    for number in range(prompt_cache.MOST_PROMPTS):
        cache.reuse(f"{number}")
    assert cache.reuse("first") == 0


def test_long_prompts_are_dropped() -> None:
    cache = PromptCache()
    for beginning in ("a", "b", "c"):
        cache.reuse(beginning * (prompt_cache.MOST_CHARACTERS // 2))
    assert [cache.reuse(text) for text in ("aa", "cc")] == [0, 2]
