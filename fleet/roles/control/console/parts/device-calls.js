// What a device is asked for: its tools as forms, and texts.
import { ask, attempt, Badge, beginnings, bound, Button, Card, Choices, Code, Confirm, Empty, Fault, Field, html, Icon,
  Loaded, may, Note, part, SchemaFields, say, sayFault, Submit, t, TextArea, to, useGet, useNone, useSignal, useWork } from
  "../kit.js";

const RISKS = { read: "", act: "info", dangerous: "warn" };
export const OUTCOMES = { ok: "good", error: "bad", unknown: "warn", not_sent: "warn", queued: "", sent: "info" };

export function DeviceTools({ device, path }) {
  const tools = useGet(`${path}/tools`);
  return html`<${Loaded} of=${tools}>${({ tools: found }) => html`<${Card} title=${t("device.tab.tools")}>
    ${!device.online && html`<div style=${{ marginBottom: "14px" }}><${Note} kind="warn">${t("tools.offline")}<//>
      </div>`}
    ${found.length === 0 ? html`<${Empty} icon="tool" title=${t("tools.none")}>${t("tools.none-about")}<//>`
      : found.map((tool) => html`<${Tool} key=${tool.name} tool=${tool} device=${device} path=${path} />`)}<//>`}<//>`;
}

function Tool({ tool, device, path }) {
  const values = useSignal(beginnings(tool.input_schema)), busy = useSignal(false),
    error = useNone();
  const outcome = useNone(), sure = useNone();
  const allowed = may("devices:command") && (tool.risk !== "dangerous" || may("devices:dangerous"));
  const call = async () => {
    busy.value = true;
    error.value = outcome.value = null;
    try {
      let state = await ask(`POST ${path}/tools/${part(tool.name)}:call`, { query: { wait: 20 },
        body: { arguments: values.value } });
      outcome.value = state;
      for (let turn = 0; turn < 40 && ["queued", "sent"].includes(state.state); turn += 1) {
        await new Promise((resolve) => setTimeout(resolve, 1_500));
        outcome.value = state = await ask(`GET ${path}/calls/${part(state.id)}`);
      }
    } catch (fault) {
      error.value = fault;
    }
    busy.value = false;
  };
  const queue = () => attempt(async () => {
    const { id } = await ask(`POST ${path}/commands`, { body: { tool: tool.name, arguments: values.value } });
    say(t("commands.queued"), { undo: () => ask(`POST ${path}/commands/${id}:cancel`).catch(sayFault) });
  });
  /** Do it at once, or when what it may do was understood. @param {() => Promise<any>} work */
  const surely = (work) => { if (tool.risk === "dangerous") sure.value = work; else void work(); };
  return html`<details class="tool"><summary><${Icon} name="right" small class="turn" /><code
    class="grow wrap">${tool.name}</code>
      ${tool.user_only && html`<${Badge}>${t("tools.user-only")}<//>`}<${Badge}
        kind=${RISKS[tool.risk] ?? ""}>${t(`risk.${tool.risk}`)}<//></summary>
    <form class="inside" onSubmit=${(event) => { event.preventDefault(); surely(event.submitter?.name === "later" ? queue : call); }}>
      ${tool.description && html`<p class="muted wrap" style=${{ whiteSpace: "pre-wrap" }}>${tool.description}</p>`}
      <${SchemaFields} schema=${tool.input_schema} values=${values.value}
        onValues=${(given) => { values.value = given; }} />
      ${allowed ? html`<div class="row"><${Button} type="submit" kind=${tool.risk === "dangerous" ? "danger" : "main-action"}
        icon="play" busy=${busy.value}>${t("tools.call")}<//>${!device.online && html`<${Button} type="submit" name="later"
        icon="jobs">${t("commands.queue")}<//>`}</div>` : html`<p
        class="muted small">${t("tools.no-scope")}</p>`}
      <${Fault} error=${error.value} />
      ${outcome.value && html`<div class="stack tight" role="status"><div class="row"><${Badge}
        kind=${OUTCOMES[outcome.value.state]}>${t(`execution.${outcome.value.state}`)}<//></div>
        ${outcome.value.text && html`<${Code} value=${pretty(outcome.value.text)} label=${t("tools.answer")}
          />`}</div>`}</form>
    ${sure.value && html`<${Confirm} title=${t("tools.sure", { tool: tool.name })} action=${t("tools.call")}
      typed=${device.mac.slice(-5)} run=${async () => { void sure.value(); }}
      onClose=${() => { sure.value = null; }}>
      <p>${t("tools.sure-about", { device: device.name || device.mac })}</p><//>`}</details>`;
}

/** JSON with line breaks; any other text as it is. @param {string} text */
export function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export function DeviceTalk({ device, path }) {
  const way = useSignal("turns"), text = useSignal("");
  const said = useSignal(/** @type {{way: string, text: string, state: any}[]} */ ([]));
  const work = useWork(async () => {
    const asked = { way: way.value, text: text.value };
    let state = await ask(`POST ${path}${way.value === "say" ? ":say" : "/turns"}`, { query: { wait: 20 },
      body: { text: asked.text } });
    const at = said.value.length;
    said.value = [...said.value, { ...asked, state }];
    // The next text may have been begun meanwhile.
    if (text.value === asked.text) text.value = "";
    for (let turn = 0; turn < 60 && state.state === "accepted"; turn += 1) {
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      state = await ask(`GET ${path}/turns/${part(state.id)}`);
      said.value = said.value.map((one, place) => (place === at ? { ...one, state } : one));
    }
  });
  if (!may("devices:command")) return null;
  return html`<${Card} title=${t("talk.title")} aside=${html`<${Choices} label=${t("talk.way")} ...${bound(way)} choices=${[["turns", t("talk.turns")], ["say", t("talk.say")]]} />`}>
    <div class="stack">${said.value.length > 0 && html`<div class="talk" role="log"
      aria-label=${t("talk.title")}>${said.value.map((one) => html`<div class="turn">
        ${one.way === "turns" && html`<div class="said user">${one.text}</div>`}
        <div class="said answer">${one.way === "say" ? one.text : one.state.text || "…"}</div>
        ${one.state.state !== "answered" && html`<div><${Badge} kind=${one.state.state === "failed" ? "bad"
          : "info"}>${t(`turn.${one.state.state}`)}<//></div>`}</div>`)}</div>`}
      ${!device.online && html`<${Note} kind="warn">${t("talk.offline")}<//>`}
      <form class="form" onSubmit=${work.submit}><${Field} label=${t(`talk.${way.value}`)}
        hint=${t(`talk.${way.value}-about`)}>
        <${TextArea} rows="2" maxlength="4000" required ...${bound(text)} /><//>
        <${Submit} work=${work} disabled=${!device.online}>${t("send")}<//></form></div><//>`;
}
