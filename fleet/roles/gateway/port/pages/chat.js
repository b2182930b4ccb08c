"use strict";
const KEPT_ITEMS = 200;
const PATIENCE = 30;

/** The conversation: what was said, what tools did, and cards for callbacks that a person answers. */
class Chat {
  /** `reply` is called with a tool_result; it says whether it could be sent. */
  constructor(reply) {
    this.reply = reply;
    this.talk = find("talk");
    this.answer = null;
    this.waiting = null;
    this.cards = new Set();
    setInterval(() => this.tick(), 1000);
  }

  add(element) {
    addFollowing(this.talk, element);
    if (this.waiting && element !== this.waiting) this.talk.append(this.waiting);
    while (this.talk.children.length > KEPT_ITEMS) this.talk.children[1].remove();
    return element;
  }

  note(text, className = "") {
    this.add(make("p", { className: `note ${className}`, textContent: text }));
  }

  bubble(who, text) {
    const words = make("p", { textContent: text });
    this.add(make("article", { className: `bubble ${who}`, ariaLabel: () => say(who) }, words));
    return words;
  }

  said(text) {
    this.bubble("you", text);
    this.talk.scrollTop = this.talk.scrollHeight;
  }

  /** Shows that an answer is awaited, or no more when there is no text. */
  wait(text) {
    this.waiting?.remove();
    this.waiting = null;
    if (!text) return;
    this.waiting = make("p", { className: "waiting", role: "status" }, make("i"), make("i"), make("i"), make("span", { textContent: text }));
    addFollowing(this.talk, this.waiting);
  }

  chunk(text) {
    this.answer ??= this.bubble("assistant", "");
    this.answer.classList.add("streaming");
    this.answer.textContent += text;
    this.follow();
  }

  follow() {
    if (atEnd(this.talk)) this.talk.scrollTop = this.talk.scrollHeight;
  }

  /** The last response may repeat what was streamed, complete it, or be empty. */
  final(text, turn) {
    const streamed = this.answer?.textContent ?? "";
    const bare = (words) => words.replace(/\s+/g, "");
    const whole = bare(text).startsWith(bare(streamed)) ? text : streamed + text;
    this.answer ??= this.bubble("assistant", "");
    this.answer.textContent = whole;
    this.end(turn);
  }

  end(turn) {
    this.answer?.classList.remove("streaming");
    if (this.answer && turn) this.answer.after(make("small", { className: "took", textContent: () => took(turn) }));
    this.answer = null;
    this.follow();
  }

  error({ code, message, details }) {
    const known = `err${code}`;
    this.add(
      make(
        "article",
        { className: "problem", role: "alert" },
        make("b", { textContent: String(code) }),
        make("p", { textContent: [message, details].filter(Boolean).join(" — ") }),
        known in WORDS.en ? make("small", { textContent: () => say(known) }) : null,
      ),
    );
  }

  serverTool(message) {
    const card = this.tool(message.tool_name, "serverTool", message.arguments);
    this.finishTool(card, message.result, message.success !== false, Number(message.duration_ms));
  }

  tool(name, kind, given) {
    const state = make("span", { className: "tool-state" });
    const head = make("summary", {}, make("code", { textContent: String(name) }), make("small", { textContent: () => say(kind) }), state);
    const body = make("div", { className: "body" }, make("h4", { textContent: () => say("arguments") }), jsonBlock(pretty(given ?? {})));
    const card = make("details", { className: "tool" }, head, body);
    Object.assign(card, { state, body, started: performance.now() });
    return this.add(card);
  }

  finishTool(card, result, success, ms) {
    write(card.state, "textContent", () => `${success ? "✓" : `✗ ${say("failedTool")}`} ${duration(ms)}`);
    card.classList.toggle("bad", !success);
    card.body.append(make("h4", { textContent: () => say("result") }), jsonBlock(pretty(result ?? null)));
  }

  /** Shows that a callback waits for its answer; `editor` adds the form for a person. */
  callback(message, plan, byHand) {
    const card = this.tool(message.tool_name, "clientTool", message.arguments);
    Object.assign(card, { callId: message.call_id, change: plan.change });
    card.classList.add("pending");
    this.cards.add(card);
    if (byHand) this.edit(card, plan);
    this.tick();
    return card;
  }

  edit(card, plan) {
    const id = `result-${Math.random().toString(36).slice(2)}`;
    const result = make("textarea", { id, className: "code", rows: 4, spellcheck: false, value: pretty(plan.result ?? null) });
    const failure = make("input", { id: `${id}-error`, value: plan.error ?? (() => say("defaultFailure")) });
    failure.addEventListener("input", () => (failure.phrases = {}));
    const problem = make("p", { className: "check bad", role: "alert" });
    const send = button("sendResult", () => this.sendResult(card, result, problem), "primary");
    const fail = button("sendFailure", () => this.answerCard(card, { success: false, error: failure.value }), "danger");
    const form = make(
      "div",
      { className: "answering" },
      make("label", { htmlFor: id, textContent: () => say("resultJson") }),
      result,
      problem,
      send,
      make("label", { htmlFor: failure.id, textContent: () => say("errorText") }),
      make("div", { className: "beside" }, failure, fail),
    );
    card.open = true;
    card.classList.add("by-hand");
    card.body.append(form);
    this.follow();
    card.scrollIntoView({ block: "nearest" });
  }

  sendResult(card, field, problem) {
    try {
      const result = JSON.parse(field.value);
      this.answerCard(card, { success: true, result });
    } catch (error) {
      write(problem, "textContent", () => say("notJson", { problem: error.message }));
      field.setAttribute("aria-invalid", "true");
      field.focus();
    }
  }

  /** Answers a callback and closes its card. */
  answerCard(card, { success, result, error }) {
    if (!this.cards.has(card)) return;
    const message = { result: success ? result : null, success, error: success ? null : error };
    if (!this.reply({ type: "tool_result", call_id: card.callId, ...message }, success ? card.change : null)) return;
    const focused = card.contains(document.activeElement);
    this.drop(card);
    card.open = false;
    this.finishTool(card, success ? result : error, success, performance.now() - card.started);
    if (focused) find("text").focus();
  }

  drop(card) {
    this.cards.delete(card);
    card.classList.remove("pending", "by-hand", "late");
    card.querySelector(".answering")?.remove();
  }

  /** Closes all cards; nobody waits for them any more. */
  abandon() {
    for (const card of [...this.cards]) {
      this.drop(card);
      card.classList.add("bad");
      write(card.state, "textContent", () => say("gone"));
    }
    this.wait("");
    this.end(null);
  }

  /** Marks the cards that a failed turn left. */
  expire() {
    for (const card of this.cards) card.expired = true;
    this.tick();
  }

  tick() {
    for (const card of this.cards) {
      const seconds = Math.round((performance.now() - card.started) / 1000);
      const late = card.expired || seconds > PATIENCE;
      write(card.state, "textContent", () => (late ? say("tooLate") : say("waitsFor", { seconds })));
      card.classList.toggle("late", late);
    }
  }
}

function took(turn) {
  const parts = [];
  if (turn.first !== turn.end) parts.push(`${say("figFirst")} ${duration(turn.since(turn.first))}`);
  parts.push(`${say("figAnswer")} ${duration(turn.since(turn.end))}`);
  const spans = turn.spans.filter((span) => span.end !== null);
  if (spans.length) parts.push(`${say("figTool")} ${spans.length} × ${duration(median(spans.map((span) => span.end - span.start)))}`);
  return parts.join(" · ");
}
