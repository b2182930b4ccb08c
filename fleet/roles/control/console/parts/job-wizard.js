// A new job in three steps: what, where, how. It begins only after a look at what it would do.
import { html, useEffect, useSignal } from "../core/ui.js";
import { ask, get, part } from "../core/api.js";
import { number, t } from "../core/i18n.js";
import { go } from "../core/router.js";
import { may } from "../core/session.js";
import { Badge, Button, Card, Choices, Fault, Head, Loading, Note, Stat } from "./basics.js";
import { Confirm, say } from "./feedback.js";
import { Filter } from "./filter.js";
import { beginnings, Check, Field, NumberInput, SchemaFields, Select, TextInput } from "./form.js";

const STEPS = ["what", "where", "how"];
const STAGES = {
  careful: [{ count: 5, soak_seconds: 300, min_success: 0.95, approve: true }, { share: 0.1, soak_seconds: 600,
    min_success: 0.95 }, { share: 1 }],
  usual: [{ count: 20, soak_seconds: 60, min_success: 0.9 }, { share: 1 }],
  "at-once": [{ share: 1 }],
};

/** Tools of some devices that a query means, with their schemas. @param {string} query */
async function toolsOf(query) {
  const { items } = await get("/devices", { filter: query, fields: "mac", sort: "-last_seen", limit: 5 });
  const found = new Map();
  for (const { mac } of items)
    for (const tool of (await get(`/devices/${part(mac)}/tools`)).tools) if (!found.has(tool.name)) found.set(tool.name, tool);
  return [...found.values()].sort((a, b) => a.name.localeCompare(b.name));
}

export function JobWizard({ query: given }) {
  const step = useSignal(given ? 0 : 0), query = useSignal(given), kind = useSignal("tool"), tool = useSignal(""),
    values = useSignal(/** @type {any} */ ({}));
  const name = useSignal(""), stages = useSignal("usual"), rate = useSignal(10), window = useSignal(20),
    idle = useSignal(true), quiet = useSignal(""), halt = useSignal(10), continuous = useSignal(false);
  const tools = useSignal(/** @type {any[]|null} */ (null)), preview = useSignal(/** @type {any} */ (null)),
    error = useSignal(/** @type {any} */ (null)), busy = useSignal(false), sure = useSignal(false);
  useEffect(() => {
    tools.value = null;
    toolsOf(query.value).then((found) => { tools.value = found; }, () => { tools.value = []; });
  }, [query.value]);
  const chosen = tools.value?.find((one) => one.name === tool.value);
  const dangerous = kind.value === "reboot" || (kind.value === "tool" && (chosen?.risk ?? "dangerous") === "dangerous"
    && Boolean(tool.value));
  const body = () => ({
    name: name.value.trim() || (kind.value === "tool" ? tool.value : t(`jobs.kind.${kind.value}`)).slice(0, 63),
      kind: kind.value, query: query.value, continuous: continuous.value,
    ...(kind.value === "tool" ? { tool: tool.value, arguments: values.value } : {}),
    policy: { stages: STAGES[stages.value], rate: rate.value || 1, window: window.value || 1, idle: idle.value,
      quiet: quiet.value, halt_share: (halt.value ?? 10) / 100 },
  });
  // The dry run: read again whenever something changes that it depends on.
  const about = JSON.stringify(body());
  useEffect(() => {
    if (kind.value === "tool" && !tool.value) { preview.value = null; return; }
    const ending = new AbortController(), timer = setTimeout(() => {
      ask("POST /jobs:preview", { body: body(), signal: ending.signal }).then(
        (found) => { preview.value = found; error.value = null; },
          (fault) => { if (!ending.signal.aborted) { error.value = fault; preview.value = null; } });
    }, 350);
    return () => { clearTimeout(timer); ending.abort(); };
  }, [about]);
  const begin = async () => {
    busy.value = true;
    try {
      const made = await ask("POST /jobs", { body: body() });
      say(t("jobs.begun"));
      go(["jobs", made.id]);
    } catch (fault) {
      error.value = fault;
    }
    busy.value = false;
  };
  const last = step.value === STEPS.length - 1, ready = kind.value !== "tool" || Boolean(tool.value);
  const submit = (event) => {
    event.preventDefault();
    if (!last) step.value += 1;
    else if (dangerous) sure.value = true;
    else void begin();
  };
  return html`<${Head} title=${t("jobs.make")} about=${t("jobs.make-about")} back=${{ path: ["jobs"],
    name: t("page.jobs") }} />
    <ol class="steps">${STEPS.map((one, place) => html`<li key=${one} class=${place < step.value ? "done" : ""}
      aria-current=${place === step.value ? "step" : undefined}>${t(`jobs.step.${one}`)}</li>`)}</ol>
    <div class="columns"><${Card}>
      ${step.value === 1 && html`<div class="form"><${Filter} value=${query.value} label=${t("groups.query")}
        error=${error.value} onQuery=${(text) => { query.value = text; }} /><p
        class="muted small">${t("jobs.where-about")}</p></div>`}
      <form class="form" onSubmit=${submit} style=${{ marginTop: step.value === 1 ? "16px" : 0 }}>
      ${step.value === 0 && html`<div><${Choices} label=${t("jobs.what")} value=${kind.value}
        onChoice=${(one) => { kind.value = one; }} choices=${["tool", "reboot", "collect"].map((one) => [one,
        t(`jobs.kind.${one}`)])} /></div><p class="muted">${t(`jobs.kind.${kind.value}-about`)}</p>
        ${kind.value === "tool" && (tools.value === null ? html`<${Loading} />` : html`<${Field}
          label=${t("jobs.tool")} hint=${chosen?.description}><${Select} value=${tool.value} required
          onValue=${(one) => { tool.value = one; values.value = beginnings(tools.value?.find((found) => found.name === one)?.input_schema); }} choices=${[["", "–"], ...tools.value.map((one) => [one.name, one.name])]} /><//>
          ${tools.value.length === 0 && html`<${Note} kind="warn">${t("jobs.no-tools")}<//>`}<${SchemaFields}
            key=${tool.value} schema=${chosen?.input_schema} values=${values.value}
            onValues=${(given) => { values.value = given; }} />`)}
        ${dangerous && html`<${Note} kind="warn">${t(may("devices:dangerous") ? "jobs.dangerous"
          : "tools.no-scope")}<//>`}`}
      ${step.value === 1 && html`<${Check} checked=${continuous.value} label=${t("jobs.continuous")}
        onValue=${(given) => { continuous.value = given; }} />`}
      ${step.value === 2 && html`<${Field} label=${t("query.name")}><${TextInput} value=${name.value} maxlength="63"
        placeholder=${body().name} onValue=${(text) => { name.value = text; }} /><//>
        <${Field} label=${t("jobs.stages")} hint=${t(`jobs.stages.${stages.value}-about`)}><${Select}
          value=${stages.value} onValue=${(one) => { stages.value = one; }}
          choices=${Object.keys(STAGES).map((one) => [one, t(`jobs.stages.${one}`)])} /><//>
        <div class="pair"><${Field} label=${t("jobs.rate-field")}><${NumberInput} min="0.1" max="5000" step="any"
          required value=${rate.value} onValue=${(value) => { rate.value = value; }} /><//>
          <${Field} label=${t("jobs.window-field")} hint=${t("jobs.window-hint")}><${NumberInput} min="1" max="10000"
            required value=${window.value} onValue=${(value) => { window.value = value; }} /><//>
          <${Field} label=${t("jobs.halt-field")}><${NumberInput} min="0" max="100" required value=${halt.value}
            onValue=${(value) => { halt.value = value; }} /><//>
          <${Field} label=${t("jobs.quiet")} hint=${t("jobs.quiet-hint")}><${TextInput} value=${quiet.value}
            pattern="[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]" placeholder="22:00-07:00"
            onValue=${(text) => { quiet.value = text; }} /><//></div>
        <${Check} checked=${idle.value} label=${t("jobs.idle")} onValue=${(given) => { idle.value = given; }} />`}
      ${error.value?.code !== "bad-filter" && html`<${Fault} error=${error.value} />`}
      <div class="actions">${step.value > 0 && html`<${Button}
        onClick=${() => { step.value -= 1; }}>${t("back")}<//>`}<${Button} type="submit" kind="main-action"
        busy=${busy.value} disabled=${!ready || (last && !preview.value)}>${t(last ? "jobs.begin" : "next")}<//></div>
        </form><//>
      <${Card} title=${t("jobs.preview")}>${preview.value ? html`<div class="stack"><div class="stats"><${Stat}
        label=${t("page.devices")} value=${number(preview.value.devices)} note=${t("jobs.preview-online",
        { count: number(preview.value.online) })} /></div>
        ${preview.value.skipped.map((one) => html`<div class="row apart" key=${one.reason}><span
          class="muted wrap grow">${one.reason}</span><${Badge} kind="warn">${t("jobs.skipped",
          { count: number(one.devices) })}<//></div>`)}
        ${preview.value.devices === 0 && html`<${Note} kind="warn">${t("jobs.no-devices")}<//>`}<p
          class="muted small">${t("jobs.preview-about")}</p></div>` : html`<p
          class="muted">${t("jobs.preview-none")}</p>`}<//></div>
    ${sure.value && html`<${Confirm} title=${t("jobs.sure")} action=${t("jobs.begin")}
      typed=${String(preview.value?.devices ?? 0)} onClose=${() => { sure.value = false; }} run=${begin}>
      <p>${t("jobs.sure-about", { count: number(preview.value?.devices ?? 0) })}</p><//>`}`;
}
