// Runs in the audio thread: the microphone as frames of 60 ms at 16 kHz.
// @ts-nocheck: it runs in the scope of an audio worklet, which the types of the page do not have.
/* global registerProcessor, sampleRate */
const RATE = 16_000;
const FRAME = 960;

class Microphone extends AudioWorkletProcessor {
  constructor() {
    super();
    this.step = sampleRate / RATE;
    this.frame = new Float32Array(FRAME);
    this.filled = 0;
    this.sum = 0;
    this.count = 0;
    this.due = this.step;
  }

  // Each sample is the mean of those that it stands for: enough of a filter for speech.
  process([[samples] = []]) {
    for (const sample of samples ?? []) {
      this.sum += sample;
      this.count += 1;
      if (this.count < this.due) continue;
      this.frame[this.filled] = this.sum / this.count;
      this.filled += 1;
      this.due += this.step - this.count;
      this.sum = 0;
      this.count = 0;
      if (this.filled === FRAME) {
        this.port.postMessage(this.frame);
        this.filled = 0;
      }
    }
    return true;
  }
}

registerProcessor("microphone", Microphone);
