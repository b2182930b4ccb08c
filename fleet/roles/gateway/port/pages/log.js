"use strict";
const KEPT_FRAMES = 500;
const bytes = (text) => new TextEncoder().encode(text).length;

/** What a frame is about, in a few words. */
function summary(message, text) {
  if (!message) return text;
  const { status, content, code, tool_name: tool, count, session_id: session } = message;
  switch (message.type) {
    case "text_input":
      return String(message.text ?? "");
    case "status":
      return [status, message.data?.session_id, message.data?.pending_tools].filter((part) => part !== undefined).join(" ");
    case "llm_response":
      return (message.is_final === false ? "… " : "") + String(content ?? "");
    case "error":
      return `${code}: ${message.message}`;
    case "tool_call":
      return `${tool} ${duration(message.duration_ms)}`;
    case "tool_callback":
      return `${tool}(${JSON.stringify(message.arguments ?? {})})`;
    case "tool_result":
      return message.success === false ? `✗ ${message.error ?? ""}` : JSON.stringify(message.result ?? null);
    case "tools_registered":
      return String(count);
    case "register_tools":
      return (Array.isArray(message.tools) ? message.tools : []).map((one) => one?.name).join(", ");
    default:
      return session === undefined ? "" : String(session);
  }
}

const KINDS = {
  allKinds: () => true,
  kindSent: (frame) => frame.sent,
  kindReceived: (frame) => !frame.sent,
  kindErrors: (frame) => frame.message?.type === "error" || frame.message?.success === false || !frame.message,
  kindTools: (frame) => /tool/.test(frame.message?.type ?? ""),
};

class FrameLog {
  /** `again` is called with the text of a frame that should be edited and sent once more. */
  constructor(again) {
    this.again = again;
    this.entries = [];
    this.list = find("messages");
    this.errors = 0;
  }

  add(frame) {
    const entry = { frame, row: this.row(frame) };
    this.entries.push(entry);
    if (this.entries.length > KEPT_FRAMES) this.entries.shift().row.remove();
    entry.row.hidden = !this.matches(frame);
    addFollowing(this.list, entry.row);
    if (!frame.sent && frame.message?.type === "error") this.errors += 1;
    this.count();
  }

  count() {
    find("count").textContent = this.entries.length;
    this.list.querySelector(".empty").hidden = this.entries.length > 0;
    const badge = find("errors");
    badge.hidden = this.errors === 0;
    badge.textContent = this.errors;
  }

  clear() {
    for (const { row } of this.entries) row.remove();
    this.entries = [];
    this.errors = 0;
    this.count();
  }

  matches(frame) {
    return KINDS[find("kind").value](frame) && frame.text.toLowerCase().includes(find("filter").value.trim().toLowerCase());
  }

  filter() {
    for (const { frame, row } of this.entries) row.hidden = !this.matches(frame);
  }

  /** Shows opened frames as they are, or pretty. */
  redraw() {
    for (const { frame, row } of this.entries) if (row.open) this.fill(row, frame);
  }

  lines() {
    const shown = this.entries.filter(({ row }) => !row.hidden);
    return shown.map(({ frame }) => JSON.stringify({ time: frame.date.toISOString(), sent: frame.sent, frame: frame.message ?? frame.text })).join("\n");
  }

  row(frame) {
    const type = frame.message?.type;
    const bad = type === "error" || frame.message?.success === false;
    const row = make("details", { className: `frame ${frame.sent ? "sent" : "received"}${bad ? " bad" : ""}` });
    row.append(
      make(
        "summary",
        {},
        make("time", { textContent: clock(frame.date) }),
        make("span", { className: "way", textContent: frame.sent ? "↑" : "↓", role: "img", ariaLabel: () => say(frame.sent ? "sentFrame" : "receivedFrame") }),
        make("b", { textContent: typeof type === "string" ? type : "?" }),
        make("span", { className: "what", textContent: summary(frame.message, frame.text).slice(0, 300) }),
        make("small", { textContent: `${bytes(frame.text)} B` }),
      ),
    );
    row.addEventListener("toggle", () => row.open && this.fill(row, frame));
    return row;
  }

  fill(row, frame) {
    row.querySelector(".body")?.remove();
    const text = frame.message && find("pretty").checked ? pretty(frame.message) : frame.text;
    const buttons = make("div", { className: "row" }, button("copy", (self) => copy(text, self)));
    if (frame.sent) buttons.append(button("again", () => this.again(text)));
    row.append(make("div", { className: "body" }, jsonBlock(text), buttons));
  }
}

function button(word, act, className = "") {
  const made = make("button", { type: "button", textContent: () => say(word), className });
  made.addEventListener("click", () => act(made));
  return made;
}
