// How far a job is, and what one would do.
import { ask, Badge, Confirm, get, html, ListTable, Loaded, Meter, Note, number, Stat, t, textOr, Time, to, useEffect,
  useLoad, useNone } from "../kit.js";

const KINDS = { scheduled: "", preparing: "info", running: "accent", paused: "warn", halted: "bad", stopping: "warn",
  done: "good",
  stopped: "" };
export const JobState = ({ job }) => html`<${Badge} kind=${KINDS[job.state] ?? ""}
  dot=${job.state === "running"}>${t(`job.state.${job.state}`)}<//>`;

export const EXECUTIONS = /** @type {[string, string][]} */ ([["ok", "good"], ["error", "bad"], ["timed_out", "bad"],
  ["unknown", "warn"], ["sent", "info"], ["verifying", "info"], ["waiting", ""], ["queued", ""], ["skipped", ""], ["expired", ""],
  ["cancelled", ""]]);
const underWay = (job) => job.counts.sent + job.counts.verifying;
export const JobMeter = ({ job }) => html`<${Meter} parts=${[
  ["good", job.counts.ok, t("execution.ok")], ["bad", job.counts.error + job.counts.timed_out, t("execution.error")],
    ["warn", job.counts.unknown, t("execution.unknown")],
  ["info", underWay(job), t("execution.sent")], ["rest",
    job.devices - job.counts.ok - job.counts.error - job.counts.timed_out - job.counts.unknown - underWay(job),
    t("execution.waiting")]]} />`;

export const ended = (job) => job.counts.ok + job.counts.error + job.counts.timed_out + job.counts.unknown + job.counts.expired + job.counts.skipped + job.counts.cancelled;
export const progress = (job) => `${number(ended(job))} / ${number(job.devices)}`;

/** @param {{of: any, name?: string, what?: any[], label: string, title?: string, empty: any}} props  what: further columns */
export const JobTable = ({ name = t("query.name"), what = [], ...more }) => html`<${ListTable} ...${more}
  row=${(one) => one.id} columns=${[
    { name, show: (one) => html`<a class="name" href=${to(["jobs", one.id])}>${one.name}</a>` },
    { name: t("query.state"), show: (one) => html`<${JobState} job=${one} />` }, ...what,
    { name: t("jobs.progress"), wide: true, show: (one) => html`<div style=${{ minWidth: "140px" }}><${JobMeter}
      job=${one} /></div>` },
    { name: t("page.devices"), right: true, show: (one) => html`<span class="nowrap">${progress(one)}</span>` },
    { name: t("jobs.created"), wide: true, show: (one) => html`<${Time} at=${one.created} />` }]} />`;

/** The jobs of some kinds. @param {string[]} kinds */
export const useJobs = (kinds) => useLoad(async (signal) => (await get("/jobs", { limit: 500 },
  signal)).items.filter((one) => kinds.includes(one.kind)), []);

/** Devices that a job would reach. @param {any} preview */
export const reached = (preview) => preview.skipped.reduce((left, one) => left - one.devices, preview.devices);

/**
 * What something would do, asked again whenever that changes; `fresh` if the answer is about what is asked now.
 * @param {string} verb @param {object} body @param {boolean} [ready]
 */
export function useDryRun(verb, body, ready = true) {
  const found = useNone(), error = useNone(), about = ready ? JSON.stringify(body) : "";
  useEffect(() => {
    if (!about) { found.value = null; return; }
    const ending = new AbortController(), timer = setTimeout(() => {
      ask(verb, { body, signal: ending.signal }).then(
        (preview) => { found.value = { about, preview }; error.value = null; },
          (fault) => { if (!ending.signal.aborted) { error.value = fault; found.value = null; } });
    }, 350);
    return () => { clearTimeout(timer); ending.abort(); };
  }, [about]);
  return { preview: found.value?.preview, fresh: found.value?.about === about, error: error.value };
}

const Row = ({ text, kind, children }) => html`<div class="row apart"><span
  class="muted wrap grow">${text}</span><${Badge} kind=${kind}>${children}<//></div>`;

/** @param {{of: any}} props  of: the dry run of a job, a change of agents or an announcement */
export function DryRun({ of }) {
  return html`<div class="stack"><div class="stats"><${Stat} label=${t("page.devices")} value=${number(reached(of))}
    note=${t("jobs.preview-online", { count: number(of.online) })} href=${of.query && to(["devices"],
    { filter: of.query })} /></div>
    ${of.counted === false && html`<${Note} kind="warn">${t("agents.uncounted")}<//>`}
    ${(of.given ?? []).map((one) => html`<${Row} key=${one.reason} text=${reasonText(
      one.reason)}>${number(one.devices)}<//>`)}
    ${of.late > 0 && html`<${Row} kind="info" text=${t("agents.late")}>${number(of.late)}<//>`}
    ${(of.instead ?? []).map((one) => html`<${Row} key=${one.agent} kind="info" text=${t("agents.instead", { name: one.agent
      || t("agents.by-settings") })}>${number(one.devices)}<//>`)}
    ${(of.ways ?? []).map((one) => html`<${Row} key=${one.way} kind="good"
      text=${t(`announcements.way.${one.way}`)}>${number(one.devices)}<//>`)}
    ${(of.waiting ?? []).map((one) => html`<${Row} key=${one.reason} kind="info"
      text=${reasonText(one.reason)}>${t("jobs.later", { count: number(one.devices) })}<//>`)}
    ${of.talking > 0 && html`<${Row} kind="info" text=${t("agents.talking")}>${number(of.talking)}<//>`}
    ${of.skipped.map((one) => html`<${Row} key=${one.reason} kind="warn"
      text=${reasonText(one.reason)}>${t("jobs.skipped", { count: number(one.devices) })}<//>`)}
    ${reached(of) === 0 && html`<${Note} kind="warn">${t("jobs.no-devices")}<//>`}<p
      class="muted small">${t("jobs.preview-about")}</p></div>`;
}

/** Devices that may change without anybody having typed their number. */
const FEW = 100;
/**
 * Ask with the dry run of a change of agents; `run` gets the number of devices that was shown.
 * @param {{of?: any, verb?: string, body?: any, about: string, run: (most: number) => Promise<any>, typed?: string,
 *   children?: any, [more: string]: any}} props  verb: counts, unless `of` has counted
 */
export function Ask({ of, verb = "", body, about, run, typed, children, ...more }) {
  const found = useLoad(async (signal) => of ?? ask(verb, { body, signal }), []), many = found.data?.changing ?? 0;
  return html`<${Confirm} ...${more} disabled=${!found.data} typed=${typed ?? (many > FEW ? String(many) : "")}
    run=${() => run(many)}><p>${about}</p><${Loaded} of=${found}>${(it) => (it.given || it.devices > 0)
    && html`<${DryRun} of=${it} />`}<//>${children}<//>`;
}

/** The server's reasons are English sentences; those that are known have a text of their own. */
const reasonText = (reason) => textOr(`skip.${reason.replace(/[^a-z]+/gi, "-")}`, reason);
