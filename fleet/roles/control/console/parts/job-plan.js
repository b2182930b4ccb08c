// What a job does on each device, how carefully it goes through them, and when.
import { beginnings, Check, Choices, Fault, Field, get, html, Loading, may, Note, NumberInput, part, SchemaFields,
  Select, t, TextInput, useEffect, useEvery, useLoad } from "../kit.js";
import { quoted } from "./filter.js";

const KINDS = ["tool", "firmware", "assets", "agent", "reboot", "collect"];
const WAYS = ["reboot", "next_boot", "push"];
const IMAGES = new Set(["firmware", "assets"]);

const named = (tools, tool) => tools?.find((one) => one.name === tool);

/**
 * @param {any} values @param {any[]|null} tools
 * @returns {boolean} whether everything that the kind needs is chosen
 */
export function isReady({ kind, image, tool, arguments: given, agent }, tools) {
  if (kind === "tool") return Boolean(tool) && (named(tools, tool)?.input_schema?.required ?? []).every(
    (one) => one in given);
  return Boolean(IMAGES.has(kind) ? image : kind !== "agent" || agent);
}

/** @param {any} values @param {any[]|null} tools */
export function isRisky({ kind, tool }, tools) {
  if (kind === "tool") return (named(tools, tool)?.risk ?? "dangerous") === "dangerous";
  return kind === "reboot" || IMAGES.has(kind);
}

/** @param {any} values @returns {object} the part of a request that says what is done */
export function whatOf({ kind, tool, arguments: given, image, how, force, agent }) {
  if (kind === "tool") return { kind, tool, arguments: given };
  if (kind === "firmware") return { kind, firmware: { image: Number(image), how, force } };
  if (kind === "assets") return { kind, assets: { image: Number(image) } };
  return kind === "agent" ? { kind, agent: Number(agent) } : { kind };
}

/** Tools of some devices that a query means, with their schemas. @param {string} query */
async function toolsOf(query) {
  const { items } = await get("/devices", { filter: query, fields: "mac", sort: "-last_seen", limit: 5 });
  const lists = await Promise.all(items.map(({ mac }) => get(`/devices/${part(mac)}/tools`)));
  const found = new Map(lists.flatMap(({ tools }) => tools).map((tool) => [tool.name, tool]));
  return [...found.values()].sort((a, b) => a.name.localeCompare(b.name));
}

export function What({ values, set, tools }) {
  const { kind } = values;
  const look = () => toolsOf(values.query).then((found) => { tools.value = found; }, () => { tools.value ??= []; });
  useEffect(() => {
    tools.value = null;
    void look();
  }, [values.query]);
  // Devices that have just come have no tools of their own yet.
  useEvery(3, () => { if (kind === "tool" && tools.value?.every((one) => one.user_only)) void look(); });
  const risky = isReady(values, tools.value) && isRisky(values, tools.value);
  return html`<div><${Choices} label=${t("jobs.what")} value=${kind} onValue=${(one) => { set("kind")(one); }}
    choices=${KINDS.map((one) => [one, t(`jobs.kind.${one}`)])} /></div>
    <p class="muted">${t(`jobs.kind.${kind}-about`)}</p>
    ${kind === "tool" && html`<${Tool} values=${values} set=${set} tools=${tools.value} />`}
    ${IMAGES.has(kind) && html`<${Image} key=${kind} values=${values} set=${set} />`}
    ${kind === "agent" && html`<${Agent} values=${values} set=${set} />`}
    ${risky && html`<${Note} kind="warn">${t(may("devices:dangerous") ? "jobs.dangerous" : "tools.no-scope")}<//>`}`;
}

function Tool({ values, set, tools }) {
  if (tools === null) return html`<${Loading} />`;
  const chosen = named(tools, values.tool);
  const choose = (name) => {
    set("tool")(name);
    set("arguments")(beginnings(named(tools, name)?.input_schema));
  };
  return html`<${Field} label=${t("query.tool")} hint=${chosen?.description}><${Select} value=${values.tool} required
    onValue=${choose} choices=${[["", "–"], ...tools.map((one) => [one.name, one.name])]} /><//>
    ${tools.length === 0 && html`<${Note} kind="warn">${t("jobs.no-tools")}<//>`}<${SchemaFields} key=${values.tool}
      schema=${chosen?.input_schema} values=${values.arguments} onValues=${set("arguments")} />`;
}

function Image({ values, set }) {
  const { kind } = values;
  const images = useLoad(async (signal) => (await get("/firmware", {}, signal)).items.filter((one) => one.kind === kind),
    []);
  if (!images.data) return images.error ? html`<${Fault} error=${images.error} />` : html`<${Loading} />`;
  const choose = (id) => {
    set("image")(id);
    const found = images.data?.find((one) => String(one.id) === id);
    if (found && !values.query) set("query")(`board=${quoted(found.board)}`);
  };
  const known = images.data.some((one) => String(one.id) === values.image);
  return html`<${Field} label=${t("firmware.image")}><${Select} value=${known ? values.image : ""} required
    onValue=${choose} choices=${[["", "–"], ...images.data.map((one) => [String(one.id),
    `${one.board} · ${one.version}`])]} /><//>
    ${images.data.length === 0 && html`<${Note} kind="warn">${t("firmware.none")} <a
      href="#/firmware">${t("firmware.upload")}</a><//>`}
    ${kind === "firmware" && html`<${Field} label=${t("firmware.how")} hint=${t(`firmware.how.${values.how}-about`)}>
      <${Select} value=${values.how} onValue=${set("how")} choices=${WAYS.map((one) => [one,
      t(`firmware.how.${one}`)])} /><//>
      <${Check} checked=${values.force} label=${t("firmware.force")} onValue=${set("force")} />`}`;
}

function Agent({ values, set }) {
  const agents = useLoad(async (signal) => (may("agents:read") ? (await get("/agents", { limit: 500 },
    signal)).items.filter((one) => one.live) : []), []);
  return html`<${Field} label=${t("query.agent")}><${Select} value=${values.agent} required onValue=${set("agent")}
    choices=${[["", "–"], ...(agents.data ?? []).map((one) => [String(one.id), one.name])]} /><//>`;
}

const STAGES = {
  careful: (count) => [{ count, soak_seconds: 300, min_success: 0.95, approve: true }, { share: 0.1,
    soak_seconds: 600, min_success: 0.95 }, { share: 1 }],
  usual: (count) => [{ count, soak_seconds: 60, min_success: 0.9 }, { share: 1 }],
  "at-once": () => [{ share: 1 }],
};
const LIVES = [["3600", "hour"], ["86400", "day"], ["604800", "week"], ["2592000", "month"]];
/** Fewer outcomes than this say little; a small canary is judged by all of its own. */
const SAMPLE = 20;
const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** How many devices are first where nobody says it: few, and not all that there are. @param {any} values @param {number} count */
export const firstOf = ({ first, stages }, count) => first !== undefined ? first : Math.max(1, Math.min(stages === "careful" ? 5 : 20,
  count ? Math.floor(count / 2) : 20));

export const USUAL = { stages: "usual", first: undefined, rate: 10, window: 20, halt: 10, quiet: "", idle: true, starts: "",
  life: "604800", supersedes: "" };

/** @param {any} values @param {number} count of the devices @returns {object} the part of a request that says how and when */
export function howOf(values, count) {
  const first = firstOf(values, count) || 1, sample = values.stages === "at-once" ? SAMPLE : Math.min(first, SAMPLE);
  return {
    ...(values.starts ? { starts: new Date(values.starts).toISOString() } : {}),
    ...(values.supersedes.trim() ? { supersedes: values.supersedes.trim() } : {}),
    policy: { stages: STAGES[values.stages](first), rate: values.rate || 1, window: values.window || 1,
      idle: values.idle, quiet: values.quiet, halt_share: (values.halt ?? 10) / 100, halt_sample: sample,
      expires_seconds: Number(values.life) },
  };
}

export function How({ values, set, name, count }) {
  return html`<${Field} label=${t("query.name")}><${TextInput} value=${values.name} maxlength="63" placeholder=${name}
    onValue=${set("name")} /><//>
    <${Field} label=${t("jobs.stages")} hint=${t(`jobs.stages.${values.stages}-about`)}><${Select}
      value=${values.stages} onValue=${set("stages")} choices=${Object.keys(STAGES).map((one) => [one,
      t(`jobs.stages.${one}`)])} /><//>
    <div class="pair">${values.stages !== "at-once" && html`<${Field} label=${t("jobs.first")}
      hint=${t("jobs.first-hint")}><${NumberInput} min="1" max="10000" required
      value=${firstOf(values, count)} onValue=${set("first")} /><//>`}
      <${Field} label=${t("jobs.halt-field")}><${NumberInput} min="0" max="100" required value=${values.halt}
        onValue=${set("halt")} /><//>
      <${Field} label=${t("jobs.rate-field")}><${NumberInput} min="0.1" max="5000" step="any" required
        value=${values.rate} onValue=${set("rate")} /><//>
      <${Field} label=${t("jobs.window-field")} hint=${t("jobs.window-hint")}><${NumberInput} min="1" max="10000"
        required value=${values.window} onValue=${set("window")} /><//></div>
    <${Check} checked=${values.idle} label=${t("jobs.idle")} onValue=${set("idle")} />
    <details open=${Boolean(values.starts || values.supersedes || values.quiet)}><summary>${t("jobs.when")}</summary>
      <div class="form" style=${{ marginTop: "12px" }}><div class="pair">
      <${Field} label=${t("jobs.starts")} hint=${t("jobs.starts-hint", { zone: zone() })}><${TextInput}
        type="datetime-local" value=${values.starts} onValue=${set("starts")} /><//>
      <${Field} label=${t("life")} hint=${t("jobs.life-hint")}><${Select} value=${values.life}
        onValue=${set("life")} choices=${LIVES.map(([one, text]) => [one, t(`life.${text}`)])} /><//>
      <${Field} label=${t("jobs.quiet")} hint=${t("jobs.quiet-hint")}><${TextInput} value=${values.quiet}
        pattern="[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]" placeholder="22:00-07:00" onValue=${set("quiet")} /><//>
      <${Field} label=${t("jobs.supersedes")} hint=${t("jobs.supersedes-hint")}><${TextInput} maxlength="63"
        value=${values.supersedes} onValue=${set("supersedes")} /><//></div></div></details>`;
}
