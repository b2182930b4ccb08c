"""Turns: the user's wait, and its parts."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.definition import label_values
from fleet.ground.metrics.histogram import SECONDS, HistogramMetric

e2e_latency: Final = HistogramMetric(
    "fleet_turn_e2e_latency_seconds",
    "From the last speech that the edge detected to the first audio packet of the answer, on the edge's clock.",
    "edge",
    SECONDS,
)
end_of_turn_delay: Final = HistogramMetric(
    "fleet_turn_end_of_turn_delay_seconds",
    "From the last speech that the edge detected to the end of the utterance, on the edge's clock.",
    "edge",
    SECONDS,
)
transcription_delay: Final = HistogramMetric(
    "fleet_turn_transcription_delay_seconds",
    "From the end of the utterance to its transcript.",
    "edge",
    SECONDS,
)
llm_ttft: Final = HistogramMetric(
    "fleet_turn_llm_ttft_seconds",
    "From the start of a turn in its worker to the model's first token.",
    "worker",
    SECONDS,
)
llm_ttfs: Final = HistogramMetric(
    "fleet_turn_llm_ttfs_seconds",
    "From the start of a turn in its worker to the model's first whole sentence.",
    "worker",
    SECONDS,
)
tts_ttfb: Final = HistogramMetric(
    "fleet_turn_tts_ttfb_seconds",
    "From the start of synthesis of an answer's first sentence to its first packet.",
    "edge",
    SECONDS,
)
utterances: Final = CounterMetric(
    "fleet_utterances",
    "Utterances by outcome: understood, empty (no words in it), failed (recognition failed), undelivered (no worker), "
    "unheard (push-to-talk without speech), passed_over (spoken over an answer, which goes on), too_often (dropped: "
    "FLEET_RATE_INPUT); and texts that devices detected: wake_word, typed, typed_too_long, typed_too_often.",
    "edge",
    {"outcome": label_values("utterances")},
)
early_work_skipped: Final = CounterMetric(
    "fleet_early_work_skipped",
    "Pauses in utterances that were not recognised and judged, so that a longer silence had to end the utterance: "
    "too_often (the device pauses more than once a second, or in long utterances), recogniser_busy (half of its places "
    "were taken, or 128 pauses are being recognised).",
    "edge",
    {"reason": ("too_often", "recogniser_busy")},
)
phantoms: Final = CounterMetric(
    "fleet_phantom_transcripts",
    "Transcripts of noise that were dropped: prompt (Whisper's own prompt), repetition (one syllable or phrase again "
    "and again), phrase (words of subtitles, such as thanks for watching).",
    "edge",
    {"reason": ("prompt", "repetition", "phrase")},
)
interruptions: Final = CounterMetric(
    "fleet_interruptions",
    "Speech over answers by verdict. The answer was interrupted: keyword, words, voice (it went on and no text came in "
    "time). The answer went on: noise (no words), backchannel (such as uh-huh), echo (the answer's own words), "
    "few_words, undecided (short speech, and no text came in time; it is counted again if the text then interrupts).",
    "edge",
    {"verdict": ("keyword", "words", "voice", "noise", "backchannel", "echo", "few_words", "undecided")},
)
fillers: Final = CounterMetric(
    "fleet_fillers",
    'Phrases such as "One moment.", spoken while a model or tool keeps the user waiting.',
    "edge",
)
outcomes: Final = CounterMetric(
    "fleet_turns",
    "Ended turns: answered, failed (the user got an apology), interrupted (by the user or a newer turn).",
    "worker",
    {"outcome": ("answered", "failed", "interrupted")},
)
head_starts: Final = CounterMetric(
    "fleet_turn_head_starts",
    "Answers that were asked of the model before the end of the utterance was certain: used, wasted (the user went on, "
    "or the turn asked something else), refused (too many at a time).",
    "worker",
    {"outcome": ("used", "wasted", "refused")},
)
given_up: Final = CounterMetric(
    "fleet_turns_given_up",
    "Turns that an edge ended: no_audio_path (no packet came from the device), no_worker (no answer from its shard).",
    "edge",
    {"reason": ("no_audio_path", "no_worker")},
)
gateway: Final = CounterMetric(
    "fleet_gateway_turns",
    "Questions of gateway clients: answered, or the error that the client got.",
    "gateway",
    {"outcome": label_values("gateway_turns")},
)
