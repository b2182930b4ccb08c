// Texts that devices are told, also while they are idle. Each is a job.
import { ask, Button, Card, Check, doing, Empty, Fault, Field, get, go, Head, html, ListTable, may, Note, say,
  Select, t, TextArea, TextInput, Time, to, useEffect, useLoad, useSignal } from "../kit.js";
import { Filter } from "../parts/filter.js";
import { JobMeter, JobState, progress } from "../parts/job-state.js";

const WAYS = ["speech", "notify", "alert", "wake"];
const LIVES = [["600", "minutes"], ["3600", "hour"], ["86400", "day"]];

export default function Announcements({ query }) {
  const jobs = useLoad(async (signal) => (await get("/jobs", { limit: 500 },
    signal)).items.filter((one) => one.kind === "announce"), []);
  return html`<${Head} title=${t("page.announcements")} about=${t("announcements.about")} />
    <div style=${{ maxWidth: "860px" }}>${may("devices:command") ? html`<${Make} query=${query.query ?? ""} />`
      : html`<${Note}>${t("tools.no-scope")}<//>`}</div>
    <${ListTable} of=${jobs} title=${t("announcements.made")} label=${t("announcements.made")} row=${(one) => one.id}
      empty=${html`<${Empty} icon="speaker" title=${t("announcements.none")}>${t("announcements.none-about")}<//>`}
        columns=${[
        { name: t("announcements.text"), show: (one) => html`<a class="name" href=${to(["jobs",
          one.id])}>${one.name}</a>` },
        { name: t("query.state"), show: (one) => html`<${JobState} job=${one} />` },
        { name: t("jobs.progress"), wide: true, show: (one) => html`<div style=${{ minWidth: "120px" }}><${JobMeter}
          job=${one} /></div>` },
        { name: t("page.devices"), right: true, show: (one) => html`<span class="nowrap">${progress(one)}</span>` },
        { name: t("jobs.created"), wide: true, show: (one) => html`<${Time} at=${one.created} />` }]} />`;
}

function Make({ query: given }) {
  const text = useSignal(""), query = useSignal(given), ways = useSignal(new Set(["speech", "notify", "alert"])),
    life = useSignal("3600"), quiet = useSignal("");
  const busy = useSignal(false), error = useSignal(/** @type {any} */ (null)),
    found = useSignal(/** @type {any} */ (null));
  useEffect(() => {
    const ending = new AbortController();
    get("/devices", { filter: query.value, fields: "mac", limit: 1, count: true }, ending.signal).then(
      (page) => { found.value = page; error.value = null; },
      (fault) => { if (!ending.signal.aborted) { found.value = null; error.value = fault; } });
    return () => ending.abort();
  }, [query.value]);
  const submit = doing(busy, error, async () => {
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
    <form class="form" onSubmit=${submit}><${Field} label=${t("announcements.text")}><${TextArea} rows="3" required
      maxlength="400" value=${text.value} onValue=${(one) => { text.value = one; }} /><//>
      <div class="field" role="group" aria-label=${t("announcements.ways")}><span
        class="label">${t("announcements.ways")}</span>${WAYS.map((way) => html`<${Check} key=${way}
        label=${t(`announcements.way.${way}`)} checked=${ways.value.has(way)}
        onValue=${(on) => { const after = new Set(ways.value); if (on) after.add(way); else after.delete(way); ways.value = after; }} />`)}</div>
      <div class="pair"><${Field} label=${t("announcements.life")}><${Select} value=${life.value}
        choices=${LIVES.map(([one, name]) => [one, t(`announcements.life.${name}`)])}
        onValue=${(one) => { life.value = one; }} /><//>
        <${Field} label=${t("jobs.quiet")} hint=${t("jobs.quiet-hint")}><${TextInput} value=${quiet.value}
          pattern="[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]" placeholder="22:00-07:00"
          onValue=${(one) => { quiet.value = one; }} /><//></div>
      ${error.value?.code !== "bad-filter" && html`<${Fault} error=${error.value} />`}
      <div class="actions"><${Button} type="submit" kind="main-action" icon="speaker" busy=${busy.value}
        disabled=${!total || !ways.value.size}>${t("announcements.go")}<//></div></form></div><//>`;
}
