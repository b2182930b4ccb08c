// Texts that devices are told, also while they are idle. Each is a job.
import { ask, bound, Card, Check, Empty, Fault, Field, get, go, Head, html, may, Note, say, Select, Submit, t,
  TextArea, TextInput, useEffect, useNone, useSignal, useWork } from "../kit.js";
import { Filter } from "../parts/filter.js";
import { JobTable, useJobs } from "../parts/job-state.js";

const WAYS = ["speech", "notify", "alert", "wake"];
const LIVES = [["600", "minutes"], ["3600", "hour"], ["86400", "day"]];

export default function Announcements({ query }) {
  const jobs = useJobs(["announce"]);
  return html`<${Head} title=${t("page.announcements")} about=${t("announcements.about")} />
    <div style=${{ maxWidth: "860px" }}>${may("devices:command") ? html`<${Make} query=${query.query ?? ""} />`
      : html`<${Note}>${t("tools.no-scope")}<//>`}</div>
    <${JobTable} of=${jobs} title=${t("announcements.made")} label=${t("announcements.made")}
      name=${t("announcements.text")} empty=${html`<${Empty} icon="speaker"
      title=${t("announcements.none")}>${t("announcements.none-about")}<//>`} />`;
}

function Make({ query: given }) {
  const text = useSignal(""), query = useSignal(given), ways = useSignal(new Set(["speech", "notify", "alert"])),
    life = useSignal("3600"), quiet = useSignal("");
  const found = useNone(), error = useNone();
  useEffect(() => {
    const ending = new AbortController();
    get("/devices", { filter: query.value, fields: "mac", limit: 1, count: true }, ending.signal).then(
      (page) => { found.value = page; error.value = null; },
      (fault) => { if (!ending.signal.aborted) { found.value = null; error.value = fault; } });
    return () => ending.abort();
  }, [query.value]);
  const work = useWork(async () => {
    const made = await ask("POST /announcements", { body: { text: text.value, query: query.value,
      ways: [...ways.value], quiet: quiet.value, expires_seconds: Number(life.value) } });
    say(t("announcements.begun"));
    go(["jobs", made.job.id]);
  });
  const total = found.value?.total ?? 0;
  return html`<${Card} title=${t("announcements.make")}><div class="stack"><div class="field"><span
    class="label">${t("jobs.step.where")}</span>
      <${Filter} value=${query.value} error=${error.value} onQuery=${(one) => { query.value = one; }} />
      <span class="hint">${t(found.value?.total_is_least ? "devices.count-least" : "devices.count",
        { count: total })}</span></div>
    <form class="form" onSubmit=${work.submit}><${Field} label=${t("announcements.text")}><${TextArea} rows="3" required
      maxlength="400" ...${bound(text)} /><//>
      <div class="field" role="group" aria-label=${t("announcements.ways")}><span
        class="label">${t("announcements.ways")}</span>${WAYS.map((way) => html`<${Check} key=${way}
        label=${t(`announcements.way.${way}`)} checked=${ways.value.has(way)}
        onValue=${(on) => { const after = new Set(ways.value); if (on) after.add(way); else after.delete(way); ways.value = after; }} />`)}</div>
      <div class="pair"><${Field} label=${t("life")}><${Select} ...${bound(life)} choices=${LIVES.map(([one, name]) => [one, t(`announcements.life.${name}`)])} /><//>
        <${Field} label=${t("jobs.quiet")} hint=${t("jobs.quiet-hint")}><${TextInput} ...${bound(quiet)} pattern="[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]" placeholder="22:00-07:00" /><//></div>
      ${error.value?.code !== "bad-filter" && html`<${Fault} error=${error.value} />`}
      <${Submit} work=${work} icon="speaker" disabled=${!total || !ways.value.size}>${t("announcements.go")}<//></form></div><//>`;
}
