// The draft of an agent as a form. What is empty is left to the settings of the server.
import { ask, bound, Button, Card, Fault, Field, get, html, may, NumberInput, say, Select, t, TextArea, TextInput,
  useLoad, useSignal, useWork } from "../kit.js";

const NUMBERS = /** @type {[string, number, number, number][]} */ ([["history_messages", 0, 100, 1],
  ["history_seconds", 60, 7_776_000, 1], ["idle_seconds", 5, 110, 0.5],
  ["endpoint_ms", 200, 3_000, 10], ["endpoint_max_ms", 200, 3_000, 10], ["pause_ms", 60, 3_000, 10],
    ["filler_seconds", 0, 30, 0.5]]);

/** The Chinese voices of the machine itself, where no edge can be asked. */
const OFFLINE = ["zf_xiaoxiao", "zm_yunxi"];

/** The voices that some edge has; none if an endpoint speaks on one of them, which may have any. @param {any[]} edges */
function voicesOf(edges) {
  const all = [...new Set(edges.flatMap((one) => one.voices))].sort();
  return edges.every((one) => one.voices.length) ? all : [];
}

/** A document without what is left to the settings. @param {any} document @returns {any} */
export function slim(document) {
  return Object.fromEntries(Object.entries(document).filter(([, value]) => value !== null && value !== undefined
    && value !== "")
    .map(([name, value]) => [name, typeof value === "object" ? slim(value) : value]).filter(([,
      value]) => typeof value !== "object" || Object.keys(value).length));
}

export function AgentEditor({ agent, onSaved }) {
  const draft = useSignal(agent.draft), notes = useSignal(agent.notes);
  const providers = useLoad(async (signal) => (await get("/providers", { limit: 100 }, signal)).items, []);
  const edges = useLoad(async (signal) => (may("system:read") ? (await get("/system", undefined, signal)).edges
    : []), []);
  const set = (name, value) => { draft.value = { ...draft.value, [name]: value }; };
  const within = (part, name, value) => set(part, { ...draft.value[part], [name]: value });
  const changed = JSON.stringify([slim(draft.value), notes.value]) !== JSON.stringify([slim(agent.draft), agent.notes]);
  const work = useWork(async () => {
    onSaved(await ask(`PATCH /agents/${agent.id}`, { body: { draft: slim(draft.value), notes: notes.value },
      version: agent.version }));
    say(t("agents.saved"));
  });
  const provider = (part, kind) => html`<${Field} label=${t(`agents.provider.${kind}`)}><${Select}
    value=${draft.value[part].provider ?? ""} onValue=${(one) => within(part, "provider", one || null)}
    choices=${[["", t("agents.by-settings")],
      ...(providers.data ?? []).filter((one) => one.kind === kind).map((one) => [one.name, one.name])]} /><//>`;
  const speaker = (providers.data ?? []).find((one) => one.name === draft.value.voice.provider);
  const own = edges.data?.length ? voicesOf(edges.data) : OFFLINE, voice = draft.value.voice.name ?? "";
  const voices = speaker?.voices ?? (draft.value.voice.provider ? [] : own), usual = voices.join() === OFFLINE.join();
  return html`<form class="stack" onSubmit=${work.submit}><${Card} title=${t("agents.behaviour")}><div class="form">
      <${Field} label=${t("agents.prompt")} hint=${t("agents.prompt-hint")}><${TextArea} rows="10" maxlength="20000"
        value=${draft.value.prompt ?? ""} onValue=${(text) => set("prompt", text || null)} /><//>
      <div class="pair"><${Field} label=${t("query.language")} hint=${t("agents.language-hint")}><${TextInput}
        value=${draft.value.language ?? ""} pattern="[a-z]{2,3}|auto" placeholder="auto"
        onValue=${(text) => set("language", text || null)} /><//>
        <${Field} label=${t("accounts.role")}><${TextInput} value=${draft.value.character ?? ""} maxlength="64"
          onValue=${(text) => set("character", text || null)} /><//></div>
      <${Field} label=${t("agents.greeting")} hint=${t("agents.greeting-hint")}><${TextInput}
        value=${draft.value.greeting ?? ""} maxlength="300" onValue=${(text) => set("greeting", text || null)} /><//>
        </div><//>
    <${Card} title=${t("agents.models")}><div class="form"><div class="pair">${provider("chat", "chat")}
        <${Field} label=${t("agents.model")}><${TextInput} value=${draft.value.chat.model ?? ""}
          onValue=${(text) => within("chat", "model", text || null)} /><//>
        <${Field} label=${t("agents.temperature")}><${NumberInput} min="0" max="2" step="0.05"
          value=${draft.value.chat.temperature} onValue=${(value) => within("chat", "temperature", value)} /><//></div>
      <div class="pair">${provider("recognition", "recognition")}${provider("voice", "voice")}
        <${Field} label=${t("agents.voice")} hint=${usual ? t("agents.voices-offline") : voices.length
          ? t("agents.voices", { names: voices.slice(0, 6).join(", ") }) : undefined} fault=${voice && voices.length
          && !voices.includes(voice) && t("agents.voice-other")}><${TextInput}
          list="voices" value=${voice}
          onValue=${(text) => within("voice", "name", text || null)} /><//><datalist id="voices">${voices.map((one) =>
          html`<option key=${one} value=${one}></option>`)}</datalist>
        <${Field} label=${t("agents.speed")}><${NumberInput} min="0.5" max="2" step="0.05"
          value=${draft.value.voice.speed} onValue=${(value) => within("voice", "speed", value)} /><//></div></div><//>
    <${Card}><details><summary><strong>${t("agents.fine")}</strong></summary><div class="form"
      style=${{ marginTop: "16px" }}>
      <${Field} label=${t("agents.tool_policy")} hint=${t("agents.tool_policy-hint")}><${TextArea} class="mono"
        rows="3" maxlength="4000" value=${draft.value.tool_policy ?? ""} onValue=${(text) => set("tool_policy", text
        || null)} /><//>
      <div class="pair"><${Field} label=${t("device.tab.memory")}><${Select} value=${draft.value.memory ?? ""}
        onValue=${(one) => set("memory", one || null)} choices=${[["", t("agents.by-settings")], ["on", t("yes")],
        ["off", t("no")]]} /><//>
        <${Field} label=${t("agents.interruption")}><${Select} value=${draft.value.interruption ?? ""}
          onValue=${(one) => set("interruption", one || null)} choices=${[["", t("agents.by-settings")], ...["off",
          "low", "normal", "high"].map((one) => [one, t(`agents.interruption.${one}`)])]} /><//>
        ${NUMBERS.map(([name, low, high, step]) => html`<${Field} key=${name} label=${t(`agents.${name}`)}>
          <${NumberInput} min=${low} max=${high} step=${step} value=${draft.value[name]}
          onValue=${(value) => set(name, value)} /><//>`)}</div>
      <${Field} label=${t("query.notes")}><${TextArea} rows="2" maxlength="4000" ...${bound(notes)} /><//></div></details><//>
    <${Fault} error=${work.error} />
    ${may("agents:write") && html`<div class="row apart"><span class="muted">${changed ? t("agents.unsaved")
      : t("agents.draft-about")}</span><div class="actions">
      ${changed && html`<${Button}
        onClick=${() => { draft.value = agent.draft; notes.value = agent.notes; }}>${t("agents.discard")}<//>`}<${Button} type="submit" kind="main-action" busy=${work.busy} disabled=${!changed}>${t("agents.save")}<//></div></div>`}</form>`;
}
