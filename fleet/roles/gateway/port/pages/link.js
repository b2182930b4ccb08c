"use strict";
// The connection: opens, reconnects after 1 to 5 seconds, and tells every frame of both directions.
class Link extends EventTarget {
  constructor() {
    super();
    this.state = "offline";
    this.token = "";
    this.socket = null;
    this.session = "";
    this.lost = "";
    this.attempts = 0;
    this.reconnects = true;
    this.timer = 0;
  }

  get ready() {
    return this.state === "online";
  }

  open(url) {
    this.url = url;
    this.lost = "";
    this.attempts = 0;
    this.dial();
  }

  close() {
    clearTimeout(this.timer);
    this.lost = "";
    const socket = this.socket;
    this.socket = null;
    this.turn("offline");
    socket?.close(1000);
    if (socket) this.tell("closed", { code: 1000 });
  }

  /** Sends text exactly as it is. */
  send(text) {
    if (!this.ready) return false;
    this.socket.send(text);
    this.tell("frame", frameOf(text, true));
    return true;
  }

  post(message) {
    return this.send(JSON.stringify(message));
  }

  dial() {
    this.turn("connecting");
    // A page can send no headers: the token goes as a second subprotocol, and the first one is agreed on.
    const socket = new WebSocket(this.url, this.token ? ["fleet.gateway", `fleet.token.${this.token}`] : []);
    this.socket = socket;
    socket.addEventListener("message", (event) => socket === this.socket && this.take(event.data));
    socket.addEventListener("close", (event) => socket === this.socket && this.ended(event));
  }

  take(data) {
    const frame = frameOf(typeof data === "string" ? data : "(binary)", false);
    const { message } = frame;
    const id = message?.type === "status" && message.status === "connected" ? String(message.data?.session_id ?? "") : null;
    if (id === null) return this.tell("frame", frame);
    this.session = id;
    const fresh = !this.ready;
    if (fresh) this.turn("online");
    this.tell("frame", frame);
    if (fresh) this.welcome();
  }

  welcome() {
    this.attempts = 0;
    const resumed = this.lost;
    this.lost = "";
    this.tell("ready", { resumed });
  }

  ended(event) {
    this.socket = null;
    const worked = this.ready || this.lost;
    if (this.ready) this.lost = this.session;
    const again = worked && this.reconnects;
    this.turn(again ? "waiting" : "offline");
    this.tell("closed", { code: event.code });
    if (again) this.retry();
  }

  retry() {
    this.attempts += 1;
    this.seconds = Math.min(this.attempts, 5);
    this.turn("waiting");
    this.timer = setTimeout(() => this.dial(), this.seconds * 1000);
  }

  turn(state) {
    this.state = state;
    this.tell("state", { state });
  }

  tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** A frame with its message, if it is a JSON object. */
function frameOf(text, sent) {
  let message = null;
  try {
    const value = JSON.parse(text);
    if (value && typeof value === "object" && !Array.isArray(value)) message = value;
  } catch {
    // What is no JSON is shown as it is.
  }
  return { text, sent, message, at: performance.now(), date: new Date() };
}
