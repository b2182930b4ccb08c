// Sound of a conversation: microphone frames to packets, and packets to the loudspeaker. Opus where the browser has it.
const RATE = 16_000;
const FRAME_US = 60_000;
/** Seconds of sound that are collected before an answer begins: packets do not come evenly. */
const LEAD = 0.12;

const encoding = { codec: "opus", sampleRate: RATE, numberOfChannels: 1, bitrate: 24_000, opus: { frameDuration: FRAME_US, application: "voip" } };

/** @returns {Promise<"opus"|"pcm">} what this browser can encode and decode */
export async function soundOfBrowser() {
  if (!("AudioEncoder" in globalThis) || !("AudioDecoder" in globalThis)) return "pcm";
  try {
    const known = await AudioEncoder.isConfigSupported(/** @type {any} */ (encoding));
    return known.supported ? "opus" : "pcm";
  } catch {
    return "pcm";
  }
}

/** @param {Float32Array} samples */
function toPcm(samples) {
  const pcm = new DataView(new ArrayBuffer(samples.length * 2));
  samples.forEach((one, at) => pcm.setInt16(at * 2, Math.max(-1, Math.min(1, one)) * 32_767, true));
  return pcm.buffer;
}

/** Makes packets of frames. */
export class Packets {
  /** @param {"opus"|"pcm"} sound @param {(packet: ArrayBuffer) => void} give */
  constructor(sound, give) {
    this.give = give;
    this.at = 0;
    if (sound === "pcm") return;
    const output = (chunk) => {
      const packet = new ArrayBuffer(chunk.byteLength);
      chunk.copyTo(packet);
      give(packet);
    };
    this.encoder = new AudioEncoder({ output, error: () => {} });
    this.encoder.configure(/** @type {any} */ (encoding));
  }

  /** @param {Float32Array} frame 960 samples */
  add(frame) {
    if (!this.encoder) return this.give(toPcm(frame));
    const init = { format: "f32-planar", sampleRate: RATE, numberOfFrames: frame.length, numberOfChannels: 1, timestamp: this.at, data: frame };
    this.at += FRAME_US;
    const data = new AudioData(/** @type {any} */ (init));
    this.encoder.encode(data);
    data.close();
  }

  close() {
    if (this.encoder?.state === "configured") this.encoder.close();
  }
}

/** Plays packets one after the other. */
export class Speaker {
  /** @param {AudioContext} context @param {"opus"|"pcm"} sound @param {number} rate of the server's sound, in Hz */
  constructor(context, sound, rate) {
    this.context = context;
    this.rate = rate;
    this.next = 0;
    this.at = 0;
    /** @type {Set<AudioBufferSourceNode>} */
    this.playing = new Set();
    if (sound === "pcm") return;
    this.decoder = new AudioDecoder({ output: (data) => this.play(data), error: () => {} });
    this.decoder.configure({ codec: "opus", sampleRate: rate, numberOfChannels: 1 });
  }

  /** @param {ArrayBuffer} packet */
  add(packet) {
    if (this.decoder) {
      if (this.decoder.state !== "configured") return;
      this.decoder.decode(new EncodedAudioChunk({ type: "key", timestamp: this.at, data: packet }));
      this.at += FRAME_US;
      return;
    }
    const pcm = new Int16Array(packet);
    this.schedule(Float32Array.from(pcm, (one) => one / 32_768), this.rate);
  }

  /** @param {AudioData} data */
  play(data) {
    const samples = new Float32Array(data.numberOfFrames);
    data.copyTo(samples, { planeIndex: 0, format: "f32-planar" });
    this.schedule(samples, data.sampleRate);
    data.close();
  }

  /** @param {Float32Array} samples @param {number} rate */
  schedule(samples, rate) {
    const buffer = this.context.createBuffer(1, samples.length, rate);
    // @ts-ignore: its samples are never shared.
    buffer.copyToChannel(samples, 0);
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.context.destination);
    const now = this.context.currentTime;
    const at = this.next > now ? this.next : now + LEAD;
    this.next = at + buffer.duration;
    this.playing.add(source);
    source.onended = () => this.playing.delete(source);
    source.start(at);
  }

  /** Seconds until all that came is played. */
  get left() {
    return Math.max(0, this.next - this.context.currentTime);
  }

  /** Be silent at once. */
  hush() {
    for (const source of this.playing) source.stop();
    this.playing.clear();
    this.next = 0;
  }

  close() {
    this.hush();
    if (this.decoder?.state === "configured") this.decoder.close();
  }
}
