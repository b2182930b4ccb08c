// A conversation with an agent by voice: this page is a device of its own, over a WebSocket of the gateway.
import { signal } from "./ui.js";
import { ask } from "./api.js";
import { Packets, Speaker, soundOfBrowser } from "./sound.js";

/** @typedef {{who: "user"|"answer", text: string}} Line */
const HELLO_SECONDS = 15;

/** What ends a conversation before it begins; its text is a key of the catalogue. */
export class NoVoice extends Error {}

/** @param {{url: string|null, path: string, port: number, tls_port: number|null}} talk */
function address(talk) {
  if (talk.url) return talk.url;
  const safe = location.protocol === "https:";
  if (safe && !talk.tls_port) throw new NoVoice("voice.no-tls");
  return `${safe ? "wss" : "ws"}://${location.hostname}:${safe ? talk.tls_port : talk.port}${talk.path}`;
}

export class Voice {
  constructor() {
    /** @type {import("@preact/signals").Signal<"off"|"opening"|"listening"|"thinking"|"speaking">} */
    this.state = signal("off");
    this.lines = signal(/** @type {Line[]} */ ([]));
    this.level = signal(0);
    this.deaf = signal(false);
    this.device = signal("");
    /** The code with which the server ended it; 0 if it did not. */
    this.ended = signal(0);
    this.session = "";
  }

  /** @param {(device: string) => Promise<void>} prepare what to do before the device connects */
  async start(prepare) {
    this.state.value = "opening";
    this.ended.value = 0;
    try {
      // The browser lets sound begin only as an answer to a click.
      this.context = new AudioContext();
      const talk = await ask("POST /talks");
      this.device.value = talk.device;
      await prepare(talk.device);
      const [stream, sound] = await Promise.all([this.listen(), soundOfBrowser()]);
      this.stream = stream;
      await this.open(talk, sound);
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  /** @returns {Promise<MediaStream|null>} the microphone; nothing if there is none: then texts can be typed */
  async listen() {
    this.deaf.value = true;
    if (!navigator.mediaDevices) return null;
    const audio = { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true };
    const stream = await navigator.mediaDevices.getUserMedia({ audio }).catch(() => null);
    this.deaf.value = !stream;
    return stream;
  }

  /** @param {any} talk @param {"opus"|"pcm"} sound */
  open(talk, sound) {
    const socket = new WebSocket(address(talk), ["fleet.gateway", `fleet.ticket.${talk.ticket}`]);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new NoVoice("voice.no-answer")), HELLO_SECONDS * 1_000);
      socket.onopen = () => this.tell({
        type: "hello", version: 1, transport: "websocket", features: {},
        audio_params: { format: sound, sample_rate: 16_000, channels: 1, frame_duration: 60 },
      });
      socket.onclose = (event) => {
        clearTimeout(late);
        reject(new NoVoice("voice.refused"));
        if (this.socket === socket) {
          this.ended.value = event.code;
          this.stop();
        }
      };
      socket.onmessage = async ({ data }) => {
        if (typeof data !== "string") return this.speaker?.add(data);
        const message = JSON.parse(data);
        if (message.type !== "hello") return this.take(message);
        clearTimeout(late);
        await this.begin(message, sound).then(resolve, reject);
      };
    });
  }

  /** @param {any} hello @param {"opus"|"pcm"} sound */
  async begin(hello, sound) {
    const context = /** @type {AudioContext} */ (this.context);
    this.session = hello.session_id;
    this.speaker?.close();
    this.speaker = new Speaker(context, sound, hello.audio_params.sample_rate);
    if (this.stream && !this.packets) {
      const socket = /** @type {WebSocket} */ (this.socket);
      this.packets = new Packets(sound, (packet) => { if (socket.readyState === WebSocket.OPEN) socket.send(packet); });
      await context.audioWorklet.addModule(new URL("microphone.js", import.meta.url));
      const microphone = new AudioWorkletNode(context, "microphone", { numberOfOutputs: 0 });
      microphone.port.onmessage = ({ data }) => {
        this.level.value = Math.min(1, Math.sqrt(data.reduce((sum, one) => sum + one * one, 0) / data.length) * 6);
        this.packets?.add(data);
      };
      context.createMediaStreamSource(this.stream).connect(microphone);
    }
    // The browser cancels the echo, so the microphone stays open while the answer is spoken.
    this.tell({ type: "listen", session_id: this.session, state: "start", mode: "realtime" });
    this.state.value = "listening";
  }

  /** @param {any} message */
  take(message) {
    if (message.type === "stt") {
      this.add("user", message.text);
      this.state.value = "thinking";
    } else if (message.type === "tts" && message.state === "sentence_start") {
      this.add("answer", message.text);
      this.state.value = "speaking";
    } else if (message.type === "tts" && message.state === "stop") {
      setTimeout(() => { if (this.state.value !== "off") this.state.value = "listening"; }, (this.speaker?.left ?? 0) * 1_000);
    } else if (message.type === "alert") {
      this.add("answer", message.message);
    }
  }

  /** @param {"user"|"answer"} who @param {string} text */
  add(who, text) {
    if (!text) return;
    const last = this.lines.value.at(-1);
    const joined = who === "answer" && last?.who === "answer" && this.state.value === "speaking";
    const lines = joined ? this.lines.value.slice(0, -1) : this.lines.value;
    this.lines.value = [...lines, { who, text: joined ? `${last.text} ${text}` : text }].slice(-100);
  }

  /** @param {any} message */
  tell(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  /** Say a text as if it had been spoken. @param {string} text */
  type(text) {
    this.tell({ type: "listen", session_id: this.session, state: "detect", text });
  }

  /** Let the agent be silent. */
  interrupt() {
    this.speaker?.hush();
    this.tell({ type: "abort", session_id: this.session });
  }

  stop() {
    const { socket, stream, context } = this;
    this.socket = this.stream = this.context = undefined;
    socket?.close();
    stream?.getTracks().forEach((track) => track.stop());
    this.packets?.close();
    this.speaker?.close();
    this.packets = this.speaker = undefined;
    context?.close();
    this.level.value = 0;
    this.state.value = "off";
  }
}
