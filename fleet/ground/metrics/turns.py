"""Turns: how long a user waits, and for which part of the work."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.histogram import SECONDS, HistogramMetric

e2e_latency: Final = HistogramMetric(
    "fleet_turn_e2e_latency_seconds",
    "On the edge's clock, from the last speech that it heard to the first packet of the answer's voice.",
    "edge",
    SECONDS,
)
end_of_turn_delay: Final = HistogramMetric(
    "fleet_turn_end_of_turn_delay_seconds",
    "On the edge's clock, from the last speech that it heard to the decision that the user has ended.",
    "edge",
    SECONDS,
)
transcription_delay: Final = HistogramMetric(
    "fleet_turn_transcription_delay_seconds",
    "From that decision to the text of what was said.",
    "edge",
    SECONDS,
)
llm_ttft: Final = HistogramMetric(
    "fleet_turn_llm_ttft_seconds",
    "From the beginning of a turn in its worker to the model's first word.",
    "worker",
    SECONDS,
)
llm_ttfs: Final = HistogramMetric(
    "fleet_turn_llm_ttfs_seconds",
    "From the beginning of a turn in its worker to the model's first whole sentence.",
    "worker",
    SECONDS,
)
tts_ttfb: Final = HistogramMetric(
    "fleet_turn_tts_ttfb_seconds",
    "From giving the voice an answer's first sentence to its first packet.",
    "edge",
    SECONDS,
)
utterances: Final = CounterMetric(
    "fleet_utterances",
    "What was heard of users: understood, empty (no words in it), failed (not recognised), undelivered (no worker), "
    "unheard (push-to-talk without a word); "
    "and texts that devices detected: wake_word, typed, typed_too_long, typed_too_often.",
    "edge",
    {
        "outcome": (
            "understood",
            "empty",
            "failed",
            "undelivered",
            "unheard",
            "wake_word",
            "typed",
            "typed_too_long",
            "typed_too_often",
        )
    },
)
outcomes: Final = CounterMetric(
    "fleet_turns",
    "Turns that ended: answered, failed (the user heard an apology), interrupted (by the user or a newer turn).",
    "worker",
    {"outcome": ("answered", "failed", "interrupted")},
)
given_up: Final = CounterMetric(
    "fleet_turns_given_up",
    "Turns that an edge gave up: no_audio_path (the device sent no packet), no_worker (nothing came from its shard).",
    "edge",
    {"reason": ("no_audio_path", "no_worker")},
)
gateway: Final = CounterMetric(
    "fleet_gateway_turns",
    "Questions of gateway clients: answered, or the error that the client was sent.",
    "gateway",
    {
        "outcome": (
            "answered",
            "internal_error",
            "invalid_tool_parameters",
            "llm_error",
            "timeout",
            "tool_execution_failed",
            "tool_not_found",
            "tool_result_timeout",
        )
    },
)
