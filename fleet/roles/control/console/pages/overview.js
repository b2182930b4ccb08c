// The fleet at a glance. Every number leads to the list behind it.
import { Badge, Card, get, Head, html, Loaded, may, number, percent, short, span, Stat, t, to, useEvents,
  useGet, useLoad, useSignal } from "../kit.js";
import { EventLog } from "../parts/event-log.js";
import { JobMeter, JobState } from "../parts/job-state.js";
import { UsageChart } from "../parts/chart.js";
import { Waiting } from "../parts/admit.js";
import { FirstSteps, StartCard } from "../parts/start.js";

const SHOWN_JOBS = ["preparing", "running", "paused", "halted", "stopping"];
const MINUTE = 60_000;

/** @param {number[]} values one at least @param {number} share */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

/** @param {number[]} values */
const sum = (values) => values.reduce((all, one) => all + one, 0);

/** Turns of the last hour, as far as events are known. */
function useTurns() {
  const turns = useSignal(/** @type {any[]} */ ([]));
  const add = (events) => {
    const from = Date.now() - 60 * MINUTE;
    turns.value = [...turns.value,
      ...events.filter((one) => one.kind.startsWith("turn."))].filter((one) => Date.parse(one.at) > from).slice(-3_000);
  };
  const first = useLoad(async (signal) => {
    const { items } = may("events:read") ? await get("/events", { kinds: "turn", newest: true, limit: 500 }, signal)
      : { items: [] };
    turns.value = [];
    add(items);
    return true;
  }, []);
  useEvents(["turn"], (events) => {
    if (!first.data || events.some((one) => one.kind === "gap")) first.again();
    else add(events);
  }, 1_000);
  return turns.value;
}

export default function Overview() {
  const counts = useGet("/devices:counts", { by: "online,state" });
  const system = useLoad((signal) => (may("system:read") ? get("/system", {}, signal) : Promise.resolve(null)), []);
  const jobs = useLoad((signal) => (may("jobs:read") ? get("/jobs", { limit: 50 }, signal)
    : Promise.resolve({ items: [] })), []);
  useEvents(["device.online", "device.offline", "device.registered"], counts.again, 2_000);
  useEvents(["job"], jobs.again, 2_000);
  useEvents(["session"], system.again, 2_000);
  const drifting = useGet("/devices:counts", { by: "online", filter: "drift" });
  const turns = useTurns();
  const online = counts.data?.items[0].values ?? {}, states = counts.data?.items[1].values ?? {};
  const total = (online.true ?? 0) + (online.false ?? 0);
  const drift = drifting.data && sum(Object.values(drifting.data.items[0].values));
  const ended = turns.filter((one) => ["turn.answered", "turn.failed", "turn.interrupted"].includes(one.kind));
  const failed = ended.filter((one) => one.kind === "turn.failed").length;
  const heard = turns.filter((one) => one.kind === "turn.spoken"
    && one.data.first_audio_ms).map((one) => one.data.first_audio_ms);
  const running = (jobs.data?.items ?? []).filter((one) => SHOWN_JOBS.includes(one.state));
  const talking = system.data && sum(system.data.edges.map((one) => one.sessions));
  if (counts.data && total === 0) return html`<${Head} title=${t("page.overview")} /><${StartCard} /><${Waiting} />
    <${FirstSteps} />`;
  return html`<${Head} title=${t("page.overview")} about=${t("overview.about")} />
    <${StartCard} /><${Waiting} />
    <${Loaded} of=${counts}>${() => html`<div class="stats">
      <${Stat} label=${t("online")} dot="good" value=${short(online.true ?? 0)} note=${t("overview.of",
        { total: number(total) })} href=${to(["devices"], { filter: "online" })} />
      <${Stat} label=${t("offline")} value=${short(online.false ?? 0)} note=${t("overview.offline-note",
        { share: percent((online.false ?? 0) / (total || 1)) })} href=${to(["devices"], { filter: "online=false" })} />
      ${talking != null && html`<${Stat} label=${t("overview.talking")} dot=${talking ? "live" : ""}
        value=${short(talking)} note=${t("overview.talking-note")} href=${to(["live"])} />`}
      <${Stat} label=${t("usage.turns")} value=${short(ended.length)} note=${t("overview.last-hour")}
        href=${to(["live"], { view: "turns" })} />
      <${Stat} label=${t("overview.first-audio")} value=${heard.length ? span(quantile(heard, 0.5)) : "–"}
        note=${heard.length ? t("overview.p95", { time: span(quantile(heard, 0.95)) })
        : t("overview.first-audio-note")} href=${to(["live"], { view: "turns" })} />
      <${Stat} label=${t("overview.failed")} dot=${failed ? "bad" : ""} value=${ended.length
        ? percent(failed / ended.length, 1) : "–"} note=${t("overview.failed-note", { count: number(failed) })}
        href=${to(["live"], { view: "failures" })} />
      <${Stat} label=${t("overview.drift")} dot=${drift ? "warn" : ""} value=${drift === undefined ? "–"
        : short(drift)} note=${t("overview.drift-note")} href=${to(["devices"], { filter: "drift" })} /></div>`}<//>
    <div class="columns"><div class="stack">
      ${may("usage:read") && html`<${UsageChart} />`}
      ${may("events:read") && html`<${EventLog} kinds="turn.failed,job,device.claimed,device.refused,events"
        title=${t("overview.notable")} />`}</div>
      <div class="stack">${may("jobs:read") && html`<${Card} title=${t("overview.jobs")} aside=${html`<a
        href=${to(["jobs"])}>${t("all")}</a>`}>${running.length === 0
        ? html`<p class="muted">${t("overview.no-jobs")}</p>` : html`<div class="stack">${running.slice(0,
          6).map((job) => html`<a class="job-line" key=${job.id} href=${to(["jobs", job.id])}><span class="row apart">
          <strong class="clip grow">${job.name}</strong><${JobState} job=${job} /></span><${JobMeter} job=${job} />
          </a>`)}</div>`}<//>`}
      <${Card} title=${t("overview.states")}><div class="bars">${["registered", "waiting", "bound", "refused",
        "revoked"].filter((one) => states[one]).map((one) => html`
        <a key=${one} href=${to(["devices"], { filter: `state=${one}` })}><span class="fill"
          style=${{ position: "absolute", width: `${(states[one] / (total || 1)) * 100}%` }}></span>
          <span>${t(`state.${one}`)}</span><span class="number muted">${number(states[one])}</span></a>`)}</div><//>
      ${may("system:read") && system.data && html`<${Health} system=${system.data} />`}</div></div>`;
}

function Health({ system }) {
  const lost = system.shards_without_owner.length;
  const away = sum(system.brokers.map((one) => one.away));
  const line = (good, name, text) => html`<a class="row apart plain" key=${name} href=${to(["system"])}>
    <span>${name}</span><${Badge} kind=${good ? "good" : "bad"} dot>${text}<//></a>`;
  return html`<${Card} title=${t("page.system")} aside=${html`<a href=${to(["system"])}>${t("details")}</a>`}><div
    class="stack tight">
    ${line(lost === 0, t("system.shards"), lost ? t("system.without-owner", { count: number(lost) })
      : t("system.all-owned", { count: number(system.shards) }))}
    ${system.brokers.length > 0 && line(away === 0, t("system.brokers"), away ? t("system.broker-away",
      { count: number(away) }) : t("online"))}
    ${line(system.edges.length > 0, t("system.edges"), number(system.edges.length))}
    ${line(system.events_waiting < 1000, t("system.lag"), t("system.events",
      { count: short(system.events_waiting) }))}</div><//>`;
}
