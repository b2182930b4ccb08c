"""Scripted models behind the server under test.

The suite plays the three models that a voice server asks, in OpenAI's shape: recognition, chat and voice. Point your
server to them while the suite runs, with whatever settings it has for that. For a suite at http://HOST:PORT they are

    recognition   POST http://HOST:PORT/v1/audio/transcriptions   WAV in; json, verbose_json or text out
    chat          POST http://HOST:PORT/v1/chat/completions       streamed or not, with tools
    voice         POST http://HOST:PORT/v1/audio/speech           pcm or wav out, 24 kHz unless `sample_rate` is given

Any API key, model name and voice name will do. fleet itself is set up so:

    ASR_BASE_URL=http://HOST:PORT/v1  TTS_BASE_URL=http://HOST:PORT/v1
    LLM_BASE_URL=http://HOST:PORT/v1  LLM_MODEL=fleet-conformance

Nothing else of the server needs to be known, since every sound carries its own script: simulated devices speak with
recorded speech with two quiet tones that encode a number, the *mark*. Recognition reads the mark and answers with the
transcript of its scene, `scene 137: what time is it`; chat finds `scene 137` in the newest user message and answers as
the scene says; the voice says each sentence with the scene's mark above it, so that a device can tell what it hears.

What the server must do for that: give recognition the audio as it came (any sample rate from 12 kHz on, but no noise
suppression, which removes steady tones), and give the chat model the transcript and the voice the model's sentences
with their letters and digits left as they are.
"""
