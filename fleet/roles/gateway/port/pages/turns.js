"use strict";
// What each answer took, read off the frames. The gateway answers in order, so news belongs to the oldest open turn.
const ENDING = new Set(["LLM_ERROR", "TIMEOUT", "INTERNAL_ERROR", "TOOL_NOT_FOUND", "TOOL_EXECUTION_FAILED", "TOOL_RESULT_TIMEOUT"]);
const KEPT_TURNS = 50;

class Turn {
  constructor(text, at) {
    Object.assign(this, { text, at, accepted: null, first: null, end: null, error: "", spans: [] });
  }

  since(at) {
    return at === null ? null : at - this.at;
  }
}

class Turns extends EventTarget {
  constructor() {
    super();
    this.all = [];
    this.open = [];
    this.calls = new Map();
    this.pings = [];
    this.rtts = [];
    this.lastSent = "";
  }

  get current() {
    return this.open[0] ?? null;
  }

  observe({ message, sent, at }) {
    if (sent) {
      this.lastSent = message?.type ?? "";
      this.sent(message ?? {}, at);
    } else this.received(message ?? {}, at);
    this.changed();
  }

  changed() {
    this.dispatchEvent(new Event("change"));
  }

  sent(message, at) {
    if (message.type === "ping") this.pings.push(at);
    if (message.type === "text_input") {
      const turn = new Turn(String(message.text ?? ""), at);
      this.all.push(turn);
      this.open.push(turn);
      if (this.all.length > KEPT_TURNS) this.all.shift();
    }
    if (message.type === "tool_result") {
      const span = this.calls.get(message.call_id);
      if (span && span.end === null) Object.assign(span, { end: at, failed: message.success === false });
    }
  }

  received(message, at) {
    const turn = this.current;
    switch (message.type) {
      case "pong":
        if (this.pings.length) this.rtts.push(at - this.pings.shift());
        break;
      case "status":
        if (message.status === "processing" && turn) turn.accepted ??= at;
        break;
      case "tool_call":
        turn?.spans.push({ name: message.tool_name, start: at - (Number(message.duration_ms) || 0), end: at, failed: message.success === false });
        break;
      case "tool_callback":
        this.called(turn, message, at);
        break;
      case "llm_response":
        if (turn) turn.first ??= at;
        if (turn && message.is_final !== false) this.finish(turn, at, "");
        break;
      case "error":
        this.failed(String(message.code), at);
    }
  }

  called(turn, message, at) {
    const span = { name: message.tool_name, start: at, end: null, failed: false };
    this.calls.set(message.call_id, span);
    turn?.spans.push(span);
  }

  /** An error answers the present turn, or the text that was just sent; a complaint about another frame answers none. */
  failed(code, at) {
    const newest = this.open.at(-1);
    const ended = code === "SESSION_ERROR" && this.lastSent === "end_session";
    if (this.current && (ended || ENDING.has(code))) this.finish(this.current, at, code);
    else if (this.lastSent === "text_input" && newest?.accepted === null) this.finish(newest, at, code);
  }

  finish(turn, at, error) {
    Object.assign(turn, { end: at, error });
    this.open = this.open.filter((one) => one !== turn);
  }

  /** Ends what the closed connection left open; returns how many turns. */
  abandon() {
    const lost = this.open.length;
    for (const turn of [...this.open]) this.finish(turn, performance.now(), "—");
    this.pings = [];
    this.calls.clear();
    this.changed();
    return lost;
  }
}

const median = (values) => [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)];

function figure(name, values) {
  const note = values.length ? say("median", { count: values.length }) : "";
  return make("div", {}, make("dt", { textContent: say(name) }), make("dd", { textContent: values.length ? duration(median(values)) : "–" }), make("small", { textContent: note }));
}

function showFigures(turns) {
  const good = turns.all.filter((turn) => turn.end !== null && !turn.error);
  const spans = turns.all.flatMap((turn) => turn.spans).filter((span) => span.end !== null);
  find("figures").replaceChildren(
    figure("figFirst", good.map((turn) => turn.since(turn.first))),
    figure("figAnswer", good.map((turn) => turn.since(turn.end))),
    figure("figTool", spans.map((span) => span.end - span.start)),
    figure("figPing", turns.rtts),
  );
  find("rtt").textContent = turns.rtts.length ? duration(turns.rtts.at(-1)) : "–";
}

function timingRow(turn, whole, { name, start, end, kind }) {
  const bar = make("i", { className: `bar-${kind}` });
  bar.style.left = `${Math.max(0, (turn.since(start) / whole) * 100)}%`;
  bar.style.width = `${Math.max(0, ((end - start) / whole) * 100)}%`;
  const track = make("span", { className: "track", ariaHidden: "true" }, bar);
  return make("li", {}, make("span", { textContent: name, title: name }), track, make("b", { textContent: duration(end - start) }));
}

function timingCard(turn, now) {
  const end = turn.end ?? now;
  const whole = Math.max(turn.since(end), 1);
  const rows = [];
  if (turn.accepted !== null) rows.push({ name: say("rowAccepted"), start: turn.at, end: turn.accepted, kind: "wait" });
  for (const span of turn.spans) rows.push({ name: span.name, start: span.start, end: span.end ?? now, kind: span.failed ? "bad" : "tool" });
  if (turn.first !== null && turn.first !== turn.end) rows.push({ name: say("rowFirst"), start: turn.at, end: turn.first, kind: "wait" });
  if (turn.end !== null) rows.push({ name: turn.error || say("rowAnswer"), start: turn.at, end: turn.end, kind: turn.error ? "bad" : "all" });
  const head = make("h3", {}, make("span", { textContent: turn.text || "“”" }), make("b", { textContent: turn.end === null ? "…" : duration(turn.since(turn.end)) }));
  return make("article", {}, head, make("ul", {}, ...rows.map((row) => timingRow(turn, whole, row))));
}

function showTimings(turns) {
  showFigures(turns);
  if (find("timings").hidden) return;
  const now = performance.now();
  find("turns").replaceChildren(...turns.all.map((turn) => timingCard(turn, now)).reverse());
  find("timings").querySelector(".empty").hidden = turns.all.length > 0;
}
