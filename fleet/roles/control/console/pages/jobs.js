// Something on many devices: a few first, and not further once it goes wrong.
import { ask, attempt, Badge, Button, Card, classes, Confirm, Empty, get, go, Head, html, LinkButton,
  ListTable, Loaded, may, Note, number, percent, put, save, say, span, t, textOr, Time, to, useEvents, useEvery,
  useGet, useList, useLoad, useSignal } from "../kit.js";
import { GoBack, isOlder } from "../parts/images.js";
import { JobWizard } from "../parts/job-wizard.js";
import { EXECUTIONS, JobMeter, JobState, JobTable, progress } from "../parts/job-state.js";

const KINDS = Object.fromEntries(EXECUTIONS);
const RETRIED = ["error", "timed_out", "unknown"];

export default function Jobs({ parts, query }) {
  if (parts.length) return html`<${One} key=${parts[0]} id=${parts[0]} query=${query} />`;
  return query.make === "1" ? html`<${JobWizard} query=${query} />` : html`<${List} />`;
}

function List() {
  const jobs = useList("/jobs");
  useEvents(["job"], jobs.again, 500);
  const make = may("jobs:write") && html`<${LinkButton} icon="plus" kind="main-action" href=${to(["jobs"],
    { make: 1 })}>${t("jobs.make")}<//>`;
  return html`<${Head} title=${t("page.jobs")} about=${t("jobs.about")}>${make}<//>
    <${JobTable} of=${jobs} label=${t("page.jobs")} empty=${html`<${Empty} icon="jobs" title=${t("jobs.none")}
      action=${make}>${t("jobs.none-about")}<//>`} what=${[{ name: t("jobs.what"), wide: true, show: (one) => html`<span
      class="mono small wrap">${one.tool || t(`jobs.kind.${one.kind}`)}</span>` }]} />`;
}

/** What can be done with a job in a state. */
const VERBS = { scheduled: ["stop"], preparing: ["stop"], running: ["pause", "stop"], paused: ["continue", "stop"],
  halted: ["continue",
  "stop"], stopping: [], done: [], stopped: [] };
const ICONS = { pause: "pause", continue: "play", stop: "stop", approve: "check", retry: "retry" };

function One({ id, query }) {
  const job = useGet(`/jobs/${id}`), stopping = useSignal(false), busy = useSignal("");
  const executions = useList(`/jobs/${id}/executions`, { state: query.state, limit: 100 });
  useEvents(["job"], (events) => { if (events.some((one) => !one.data?.job
    || String(one.data.job) === id)) { job.again(); executions.again(); } }, 500);
  // Events tell of states and stages, not of each device. Pages that were asked for further down stay.
  useEvery(2, () => {
    if (!job.data || ["done", "stopped"].includes(job.data.state)) return;
    job.again();
    if ((executions.data ?? []).length <= 100) executions.again();
  });
  const steer = async (verb, body) => {
    busy.value = verb;
    await attempt(async () => {
      const found = await ask(`POST /jobs/${id}:${verb}`, { body });
      job.set(found);
      say(t(`jobs.did.${verb === "retry" && found.state !== "running" ? "retry-later" : verb}`));
      executions.again();
    });
    busy.value = "";
  };
  return html`<${Loaded} of=${job}>${(found) => {
    const { counts } = found, failed = counts.error + counts.timed_out + counts.unknown, judged = counts.ok + failed;
    const waits = found.state === "running" && found.policy.stages[found.stage - 1]?.approve
      && found.stage < found.policy.stages.length;
    const verbs = [...(waits ? ["approve"] : []), ...(VERBS[found.state] ?? []), ...(failed && ["running", "paused",
      "halted", "done"].includes(found.state) ? ["retry"] : [])];
    return html`<${Head} title=${found.name} back=${{ path: ["jobs"], name: t("page.jobs") }}><${JobState}
      job=${found} />
      ${may("jobs:write") && verbs.map((verb) => html`<${Button} key=${verb} icon=${ICONS[verb]}
        busy=${busy.value === verb} kind=${verb === "stop" ? "danger" : verb === "approve" || verb === "continue"
        ? "main-action" : ""}
        onClick=${() => (verb === "stop" ? (stopping.value = true) : steer(verb, verb === "retry" ? {}
          : undefined))}>${t(`jobs.${verb}`)}<//>`)}
      ${found.kind === "firmware" && may("jobs:write", "devices:dangerous") && html`<${Back} job=${found} />`}<//>
      ${found.reason && html`<${Note} kind=${found.state === "halted" ? "warn" : ""}>
        <strong>${t(found.state === "halted" ? "jobs.halted"
        : "jobs.reason")}</strong> ${reasonOf(found.reason)}${found.state === "halted" && html`<div class="small">${t("jobs.halted-about")}</div>`}<//>`}
      <${Card} title=${t("jobs.progress")} aside=${html`<strong class="number">${progress(found)}</strong>`}><div
        class="stack"><${JobMeter} job=${found} />
        <div class="chips" role="group"
          aria-label=${t("jobs.results")}>${EXECUTIONS.filter(([name]) => counts[name]).map(([name,
          kind]) => html`<button type="button" class="chip" key=${name} aria-pressed=${String(query.state === name)}
          onClick=${() => go(["jobs", id], { state: query.state === name ? "" : name })}>
          <span class=${classes("dot", kind)}></span>${t(`execution.${name}`)} <span
            class="number">${number(counts[name])}</span></button>`)}</div></div><//>
      ${found.kind === "announce" && html`<${Receipts} id=${id} counts=${JSON.stringify(counts)} />`}
      <div class="columns"><${Card} title=${t("jobs.stages")}><ol class="stages">${found.policy.stages.map((stage,
        place) => html`<${Stage} key=${place} stage=${stage} number=${place + 1} current=${place + 1 === found.stage
        && !["done", "stopped"].includes(found.state)} past=${place + 1 < found.stage || found.state === "done"}
        />`)}</ol><//>
        <${Card} title=${t("details")}><dl class="facts"><dt>${t("jobs.what")}</dt><dd class="mono small">${found.tool
          || t(`jobs.kind.${found.kind}`)}</dd>
          ${Object.keys(found.arguments).length > 0 && html`<dt>${t("jobs.arguments")}</dt><dd
            class="mono small">${JSON.stringify(found.arguments)}</dd>`}
          ${(found.firmware || found.assets) && html`<dt>${t("firmware.image")}</dt><dd><${ImageName}
            id=${(found.firmware ?? found.assets).image} /></dd>`}
          ${found.supersedes && html`<dt>${t("jobs.supersedes")}</dt><dd>${found.supersedes}</dd>`}
          ${found.starts && html`<dt>${t("jobs.starts")}</dt><dd><${Time} at=${found.starts} plain /></dd>`}
          <dt>${t("groups.query")}</dt><dd>${found.query ? html`<a href=${to(["devices"], { filter: found.query })}>
            <code class="wrap">${found.query}</code></a>` : t("jobs.stage-all")}</dd>
          <dt>${t("jobs.rate")}</dt><dd>${t("jobs.rate-of", { rate: number(found.policy.rate),
            window: number(found.policy.window) })}</dd>
          <dt>${t("jobs.success")}</dt><dd>${judged ? percent(counts.ok / judged, 1) : "–"}</dd>
          <dt>${t("jobs.created")}</dt><dd>${found.created_by} · <${Time} at=${found.created} /></dd>
            <dt>${t(found.ended ? "jobs.ended" : "jobs.expires")}</dt><dd><${Time} at=${found.ended ?? found.expires}
            plain /></dd></dl><//></div>
      <${ListTable} of=${executions} title=${t("jobs.results")} label=${t("jobs.results")} row=${(one) => one.device}
        aside=${html`<${Button} kind="quiet" icon="save" onClick=${() => save(`/jobs/${id}/executions:export`,
        `job-${id}.csv`, { state: query.state })}>${t("export")}<//>`}
        empty=${html`<${Empty} icon="jobs" title=${t("jobs.no-results")}>${t(found.state === "preparing"
          ? "jobs.preparing-about" : "jobs.no-results-about")}<//>`} columns=${[
          { name: t("query.device"), show: (one) => html`<a class="mono name" href=${to(["devices",
            one.device])}>${one.device}</a>` },
          { name: t("query.state"), show: (one) => html`<${Badge}
            kind=${KINDS[one.state]}>${t(`execution.${one.state}`)}<//>` },
          { name: t("tools.answer"), wide: true, show: (one) => html`<span class="small wrap">${one.text}</span>` },
          { name: t("jobs.attempts"), right: true, wide: true, show: (one) => one.attempts },
          { name: t("jobs.since"), show: (one) => html`<${Time} at=${one.since} />` }]} />
      ${stopping.value && html`<${Confirm} title=${t("jobs.stop")} action=${t("jobs.stop")}
        onClose=${put(stopping, false)} run=${() => steer("stop")}><p>${t("jobs.stop-about")}</p><//>`}`;
  }}<//>`;
}

/** @param {string} reason of the server */
function reasonOf(reason) {
  const [, failed, count, share] = /^(\d+) of (\d+) failed, more than ([\d.e-]+)/.exec(reason) ?? [];
  if (share) return t("jobs.reason.failed", { failed, count, share: percent(Number(share), 1) });
  return textOr(`jobs.reason.${reason}`, reason);
}

/** The newest image of the board that is older than that of a rollout, and the way back to it. */
function Back({ job }) {
  const asking = useSignal(false);
  const found = useLoad(async (signal) => {
    const { items } = await get("/firmware", {}, signal), own = items.find((one) => one.id === job.firmware.image);
    const older = items.filter((one) => one.kind === "firmware" && one.board === own?.board
      && isOlder(one.version, own.version));
    return older.reduce((best, one) => (best && isOlder(one.version, best.version) ? best : one), null);
  }, [job.firmware.image]);
  return found.data && html`<${Button} icon="retry" onClick=${put(asking, true)}>${t("firmware.back",
    found.data)}<//>${asking.value && html`<${GoBack} image=${found.data} job=${job}
    onClose=${put(asking, false)} />`}`;
}

function ImageName({ id }) {
  const found = useGet(`/firmware/${id}`);
  return html`<a href=${to(["firmware"])}>${found.data ? `${found.data.board} · ${found.data.version}` : id}</a>`;
}

/** By which way how many devices were told. */
function Receipts({ id, counts }) {
  const state = useLoad((signal) => get(`/announcements/${id}`, {}, signal), [id, counts]);
  const receipts = Object.entries(state.data?.receipts ?? {});
  return html`<${Card} title=${t("announcements.receipts")}>${receipts.length
    ? html`<div class="chips">${receipts.map(([way, count]) => html`
      <span class="chip" key=${way}>${way} <strong class="number">${number(count)}</strong></span>`)}</div>`
    : html`<p class="muted">${t("announcements.no-receipts")}</p>`}<//>`;
}

export const stageText = (stage) => (stage.count !== null && stage.count !== undefined ? t("jobs.stage-count",
  { count: number(stage.count) })
  : stage.query ? t("jobs.stage-query", { query: stage.query }) : stage.share === 1 ? t("jobs.stage-all")
    : t("jobs.stage-share", { share: percent(stage.share, 2) }));

function Stage({ stage, number: place, current, past }) {
  const more = [t("jobs.stage-success", { share: percent(stage.min_success) }), ...(stage.soak_seconds
    ? [t("jobs.stage-soak", { time: span(stage.soak_seconds * 1000) })] : []), ...(stage.approve
    ? [t("jobs.stage-approve")] : [])];
  return html`<li aria-current=${current ? "step" : undefined}><span class="step">${past ? "✓" : place}</span><div
    class="grow"><strong>${stageText(stage)}</strong><div class="muted small">${more.join(" · ")}</div></div></li>`;
}
