"use strict";
// Ties the parts of the page together.
const link = new Link();
const turns = new Turns();
const device = new Device();
const chat = new Chat((message, change) => {
  const sent = link.post(message);
  if (sent && change) device.apply(change);
  return sent;
});
const frames = new FrameLog((text) => {
  find("frame").value = text;
  show("setup");
  find("raw").scrollIntoView();
  find("frame").focus();
});
let statuses = new Map();
let formerTools = [];
let configuration = null;
let lastText = "";
let question = "";

const TEMPLATES = {
  ping: { type: "ping" },
  text_input: { type: "text_input", text: "Hello" },
  configure: { type: "configure", temperature: 0.2 },
  start_session: { type: "start_session" },
  frameEmpty: { type: "text_input", text: "" },
  frameUnknown: { type: "sing" },
  frameLate: { type: "tool_result", call_id: "nobody-asked", result: 1, success: true },
  frameBroken: '{"type": "text_input", "text": ',
};

/** The address that this page came from, as a WebSocket address. */
function ownAddress() {
  const asked = new URLSearchParams(location.search).get("url");
  if (asked) return asked;
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  return `${scheme}://${location.host}${location.pathname.replace(/\/(test)?$/, "")}`;
}

function show(pane) {
  document.body.dataset.pane = pane;
  for (const one of document.querySelectorAll("nav button")) one.setAttribute("aria-current", String(one.dataset.pane === pane));
  for (const id of ["talk", "messages"]) find(id).scrollTop = find(id).scrollHeight;
}

function showState() {
  const { state } = link;
  document.body.dataset.state = state;
  find("state").textContent = say(state, { seconds: link.seconds });
  find("connect").textContent = say({ offline: "connect", online: "disconnect" }[state] ?? "cancel");
  find("connect").classList.toggle("primary", state === "offline");
  find("url").readOnly = state !== "offline";
  for (const id of ["register", "configure", "start", "end", "send-frame", "send", "ping"]) find(id).disabled = !link.ready;
  find("copy-session").hidden = !link.ready || !link.session;
  find("session").textContent = link.session.length > 13 ? `${link.session.slice(0, 12)}…` : link.session;
  if (!link.ready) forgetTools();
  step("connected", link.ready);
  step("registered", registered().length > 0);
}

function registered() {
  return [...statuses].filter(([, one]) => one?.status === "registered").map(([name]) => name);
}

/** Registrations end with their connection; their names are kept to compare them with those of the next one. */
function forgetTools() {
  formerTools = [...formerTools, ...registered()];
  statuses = new Map();
}

/** Says which tools of the former connection this one does not have. */
function sayDropped() {
  const names = formerTools.filter((name) => !registered().includes(name)).join(", ");
  formerTools = [];
  if (names) chat.note(() => say("noteDropped", { names }), "bad");
}

function step(name, done) {
  document.querySelector(`[data-step=${name}]`).classList.toggle("done", done);
}

function showReach() {
  const url = find("url").value;
  const host = /^wss?:\/\/(localhost|127\.[\d.]+|\[::1\])(?=[:/]|$)/.exec(url)?.[1];
  find("reach").textContent = [say("reach", { url }), host && say("reachLocal", { host })].filter(Boolean).join(" ");
}

function showTools() {
  const { tools, problem } = readTools(find("tools").value);
  const check = find("tools-check");
  check.textContent = problem ?? say("toolsFine", { count: tools.length });
  check.classList.toggle("bad", problem !== null);
  find("tools").setAttribute("aria-invalid", String(problem !== null));
  const names = [...new Set([...(tools ?? []).map((tool) => String(tool?.name)), ...statuses.keys()])];
  find("tool-list").replaceChildren(...names.map(toolRow));
}

function toolRow(name) {
  const { status, error } = statuses.get(name) ?? {};
  const word = { registered: "statusRegistered", failed: "statusFailed" }[status] ?? "statusDraft";
  const badge = make("span", { className: `status ${status ?? ""}`, textContent: say(word) });
  return make("li", {}, make("code", { textContent: name }), badge, error ? make("small", { textContent: String(error) }) : null);
}

function showDevice() {
  find("battery").value = device.battery;
  find("volume").value = device.volume;
  find("charging").checked = device.charging;
  for (const output of document.querySelectorAll("output[for]")) output.textContent = find(output.htmlFor.value).value;
  find("things").replaceChildren(...[...device.things].map(([name, state]) => make("li", { className: state === "off" ? "off" : "on" }, make("code", { textContent: name }), make("b", { textContent: String(state) }))));
}

function register() {
  const { tools } = readTools(find("tools").value);
  if (tools) return link.post({ type: "register_tools", tools });
  find("tool-editor").open = true;
  return false;
}

/** Asks what was chosen before there was a connection. */
function ask() {
  const text = question;
  question = "";
  talk(text);
}

function talk(text) {
  if (!text.trim() || !link.ready) return;
  lastText = text;
  link.post({ type: "text_input", text, ...(link.session && { session_id: link.session }), timestamp: new Date().toISOString() });
}

function configure() {
  configuration = {
    type: "configure",
    temperature: Number(find("temperature").value),
    max_tokens: Number(find("max-tokens").value),
    enable_context: find("enable-context").checked,
    stream: find("stream").checked,
  };
  if (link.post(configuration)) sayConfigured(clock(new Date(), 0));
}

function sayConfigured(time) {
  write(find("configured"), "textContent", () => say("configuredAt", { time }));
}

function answerCallback(message) {
  const given = message.arguments && typeof message.arguments === "object" ? message.arguments : {};
  const known = readTools(find("tools").value).tools?.some((tool) => tool?.name === message.tool_name) || statuses.has(message.tool_name);
  const plan = known ? device.plan(message.tool_name, given) : { error: `Tool '${message.tool_name}' not found` };
  const byHand = document.querySelector("[name=answering]:checked").value === "hand";
  const card = chat.callback(message, plan, byHand);
  if (byHand) return show("chat");
  const success = plan.error === undefined;
  setTimeout(() => chat.answerCard(card, { success, result: plan.result, error: plan.error }), Number(find("delay").value) || 0);
}

function takeStatus({ status, data }) {
  if (status === "connected") {
    const id = link.session;
    chat.note(() => say("noteSession", { id }));
    showState();
  } else if (status === "processing") chat.wait(() => say("thinking"));
  else if (status === "waiting_for_tools") chat.wait(() => say("waitingTools", { count: data?.pending_tools ?? "" }));
  else if (status === "idle") turns.current || chat.wait("");
  else chat.note(() => say("noteStatus", { status: String(status) }));
}

function takeRegistered({ tools, count }) {
  const told = Array.isArray(tools) ? tools : [];
  for (const one of told) statuses.set(String(one?.name), one);
  const refused = told.filter((one) => one?.status === "failed").length;
  chat.note(() => say("noteRegistered", { count }) + (refused ? `, ${say("noteRefused", { count: refused })}` : ""), refused ? "bad" : "");
  showTools();
  showState();
  sayDropped();
  ask();
}

function takeResponse(message, turn) {
  const text = String(message.content ?? "");
  if (message.is_final === false) return chat.chunk(text);
  if (!turns.current) chat.wait("");
  chat.final(text, turn);
  step("answered", true);
}

function takeError(message, turn) {
  chat.error(message);
  if (turn && turn.end !== null) {
    chat.end(null);
    chat.expire();
  }
  if (!turns.current) chat.wait("");
}

function take(frame) {
  const turn = turns.current;
  turns.observe(frame);
  frames.add(frame);
  const { message, sent } = frame;
  if (!message) return sent || chat.note(() => say("notAnObject"), "bad");
  if (sent) {
    if (message.type === "text_input") {
      chat.said(String(message.text ?? ""));
      chat.wait(() => say("thinking"));
    } else if (message.type === "end_session") {
      link.session = "";
      chat.note(() => say("noteEnded"));
      showState();
    }
    return;
  }
  const takers = { status: takeStatus, tools_registered: takeRegistered, llm_response: takeResponse, error: takeError, tool_call: () => chat.serverTool(message), tool_callback: answerCallback };
  if (Object.hasOwn(takers, message.type)) takers[message.type](message, turn);
}

function closed(code) {
  const known = `close${code}`;
  question = "";
  chat.abandon();
  const lost = turns.abandon();
  const meaning = known in WORDS.en ? known : "closeOther";
  chat.note(() => say("noteClosed", { code, meaning: say(meaning) }) + (lost ? ` ${say("noteLost")}` : ""), code === 1000 ? "" : "bad");
  showTools();
}

function suggest() {
  const ideas = say("ideas").split("|").map((text) => {
    const idea = make("button", { type: "button", textContent: text, className: "idea" });
    idea.addEventListener("click", () => {
      if (link.ready) return talk(text);
      question = text;
      if (link.state === "offline") find("connection").requestSubmit();
    });
    return idea;
  });
  find("ideas").replaceChildren(...ideas);
}

function compose() {
  const field = find("text");
  if (!link.ready) return;
  talk(field.value);
  field.value = "";
  grow();
}

function grow() {
  const field = find("text");
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight + 2, 160)}px`;
}

function options(select, entries) {
  const { value } = select;
  select.replaceChildren(...entries.map(([key, text]) => make("option", { value: key, textContent: text })));
  if (value) select.value = value;
}

/** Writes everything in the present language. */
function translate() {
  const edited = find("tools").value;
  const example = edited === "" || edited === find("tools").dataset.example;
  label();
  if (example) resetTools();
  find("language").textContent = say("languageName");
  options(find("kind"), Object.keys(KINDS).map((key) => [key, say(key)]));
  options(find("template"), [["", "—"], ...Object.keys(TEMPLATES).map((key) => [key, key in WORDS.en && key.startsWith("frame") ? say(key) : key])]);
  suggest();
  showState();
  showReach();
  showTools();
  showTimings(turns);
  nameStart();
}

function resetTools() {
  find("tools").value = find("tools").dataset.example = pretty(exampleTools());
  showTools();
}

function nameStart() {
  find("start").textContent = say(find("session-id").value.trim() ? "resume" : "startNew");
}

function view(timings) {
  find("messages").hidden = timings;
  find("timings").hidden = !timings;
  showTimings(turns);
  for (const id of ["filter", "kind"]) find(id).closest(".filters").hidden = timings;
  for (const id of ["copy-log", "clear-log"]) find(id).hidden = timings;
  find("show-messages").setAttribute("aria-pressed", String(!timings));
  find("show-timings").setAttribute("aria-pressed", String(timings));
}

function connect(event) {
  event.preventDefault();
  if (link.state !== "offline") return link.close();
  const url = find("url").value.trim();
  if (!/^wss?:\/\/./i.test(url)) return chat.note(() => say("badAddress"), "bad");
  link.token = find("token").value.trim();
  try {
    link.open(url);
  } catch (error) {
    link.close();
    chat.note(error.message, "bad");
  }
}

function on(id, event, act) {
  find(id).addEventListener(event, act);
}

function onSubmit(id, act) {
  on(id, "submit", (event) => {
    event.preventDefault();
    act();
  });
}

function listen() {
  link.addEventListener("state", showState);
  link.addEventListener("frame", ({ detail }) => take(detail));
  link.addEventListener("closed", ({ detail }) => closed(detail.code));
  link.addEventListener("ready", ({ detail }) => {
    if (detail.resumed) link.post({ type: "start_session", session_id: detail.resumed });
    if (configuration) link.post(configuration);
    if (find("register-first").checked && register()) return;
    sayDropped();
    ask();
  });
  turns.addEventListener("change", () => showTimings(turns));
  setInterval(() => turns.current && showTimings(turns), 1000);
  device.addEventListener("change", showDevice);
  on("connection", "submit", connect);
  on("url", "input", showReach);
  on("copy-session", "click", ({ currentTarget }) => copy(link.session, currentTarget));
  on("ping", "click", () => link.post({ type: "ping" }));
  on("language", "click", () => {
    language = language === "zh" ? "en" : "zh";
    translate();
  });
  on("tools", "input", showTools);
  on("reset-tools", "click", resetTools);
  on("register", "click", register);
  on("reconnect", "change", (event) => (link.reconnects = event.target.checked));
}

function listenToForms() {
  for (const id of ["battery", "volume"]) on(id, "input", () => device.apply({ [id]: Number(find(id).value) }));
  on("charging", "change", () => device.apply({ charging: find("charging").checked }));
  on("temperature", "input", showDevice);
  onSubmit("configuration", configure);
  on("access", "submit", connect);
  on("session-id", "input", nameStart);
  onSubmit("sessions", () => {
    const id = find("session-id").value.trim();
    link.post(id ? { type: "start_session", session_id: id } : { type: "start_session" });
  });
  on("end", "click", () => link.post({ type: "end_session" }));
  on("template", "change", ({ target }) => {
    const chosen = TEMPLATES[target.value];
    if (chosen) find("frame").value = typeof chosen === "string" ? chosen : pretty(chosen);
  });
  onSubmit("raw", () => link.send(find("frame").value));
  onSubmit("composer", compose);
  on("text", "input", grow);
  on("text", "keydown", (event) => {
    // An input method uses Enter to choose its words.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      compose();
    } else if (event.key === "ArrowUp" && !event.target.value) {
      event.target.value = lastText;
      event.preventDefault();
    }
  });
  on("filter", "input", () => frames.filter());
  on("kind", "change", () => frames.filter());
  on("pretty", "change", () => frames.redraw());
  on("copy-log", "click", ({ currentTarget }) => copy(frames.lines(), currentTarget));
  on("clear-log", "click", () => frames.clear());
  on("show-messages", "click", () => view(false));
  on("show-timings", "click", () => view(true));
  for (const one of document.querySelectorAll("nav button")) one.addEventListener("click", () => show(one.dataset.pane));
}

find("url").value = ownAddress();
listen();
listenToForms();
translate();
showDevice();
show("chat");
