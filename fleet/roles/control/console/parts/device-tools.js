// The tools of a device as forms. What a device writes about its tools is text, and stays text.
import { html, useSignal } from "../core/ui.js";
import { ask, part } from "../core/api.js";
import { t } from "../core/i18n.js";
import { may } from "../core/session.js";
import { Badge, Button, Card, Code, Empty, Fault, Note } from "./basics.js";
import { Confirm } from "./feedback.js";
import { beginnings, SchemaFields } from "./form.js";
import { Icon } from "./icon.js";
import { Loaded, useGet } from "./load.js";

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
    error = useSignal(/** @type {any} */ (null));
  const outcome = useSignal(/** @type {any} */ (null)), sure = useSignal(false);
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
  return html`<details class="tool"><summary><${Icon} name="right" small class="turn" /><code
    class="grow wrap">${tool.name}</code>
      ${tool.user_only && html`<${Badge}>${t("tools.user-only")}<//>`}<${Badge}
        kind=${RISKS[tool.risk] ?? ""}>${t(`risk.${tool.risk}`)}<//></summary>
    <form class="inside" onSubmit=${(event) => { event.preventDefault(); if (tool.risk === "dangerous") sure.value = true; else void call(); }}>
      ${tool.description && html`<p class="muted wrap" style=${{ whiteSpace: "pre-wrap" }}>${tool.description}</p>`}
      <${SchemaFields} schema=${tool.input_schema} values=${values.value}
        onValues=${(given) => { values.value = given; }} />
      ${allowed ? html`<div><${Button} type="submit" kind=${tool.risk === "dangerous" ? "danger" : "main-action"}
        icon="play" busy=${busy.value}>${t("tools.call")}<//></div>` : html`<p
        class="muted small">${t("tools.no-scope")}</p>`}
      <${Fault} error=${error.value} />
      ${outcome.value && html`<div class="stack tight" role="status"><div class="row"><${Badge}
        kind=${OUTCOMES[outcome.value.state]}>${t(`call.${outcome.value.state}`)}<//></div>
        ${outcome.value.text && html`<${Code} value=${pretty(outcome.value.text)} label=${t("tools.answer")}
          />`}</div>`}</form>
    ${sure.value && html`<${Confirm} title=${t("tools.sure", { tool: tool.name })} action=${t("tools.call")}
      typed=${device.mac.slice(-5)} run=${async () => { void call(); }} onClose=${() => { sure.value = false; }}>
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
