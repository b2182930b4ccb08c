// Texts that devices are told, also while they are idle. Each is a job.
import { ask, bound, Card, Check, Empty, Fault, Field, go, Head, html, Loading, may, Note, NumberInput, say, Select, Submit, t,
  TextArea, TextInput, useSignal, useWork } from "../kit.js";
import { Filter } from "../parts/filter.js";
import { DryRun, JobTable, reached, useDryRun, useJobs } from "../parts/job-state.js";

const WAYS = ["speech", "notify", "alert", "wake"];
const QUIET = /^(?:[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9])?$/;
const LIVES = [["600", "minutes"], ["3600", "hour"], ["86400", "day"]];

export default function Announcements({ query }) {
  const jobs = useJobs(["announce"]);
  return html`<${Head} title=${t("page.announcements")} about=${t("announcements.about")} />
    ${may("devices:command") ? html`<${Make} query=${query.query ?? ""} />` : html`<${Note}>${t("tools.no-scope")}<//>`}
    <${JobTable} of=${jobs} title=${t("announcements.made")} label=${t("announcements.made")}
      name=${t("announcements.text")} empty=${html`<${Empty} icon="speaker"
      title=${t("announcements.none")}>${t("announcements.none-about")}<//>`} />`;
}

function Make({ query: given }) {
  const text = useSignal(""), query = useSignal(given), ways = useSignal(new Set(["speech", "notify", "alert"])),
    life = useSignal("3600"), quiet = useSignal(""), halt = useSignal(10);
  const body = { query: query.value, ways: [...ways.value], quiet: quiet.value, expires_seconds: Number(life.value),
    halt_share: (halt.value ?? 10) / 100 };
  // What is said does not matter for who is told.
  const { preview, fresh, error } = useDryRun("POST /announcements:preview", { ...body, text: "a" }, ways.value.size > 0
    && QUIET.test(quiet.value));
  const work = useWork(async () => {
    const made = await ask("POST /announcements", { body: { ...body, text: text.value } });
    say(t("announcements.begun"));
    go(["jobs", made.job.id]);
  });
  return html`<div class="columns"><${Card} title=${t("announcements.make")}><div class="stack"><div class="field"><span
    class="label">${t("jobs.step.where")}</span>
      <${Filter} eager value=${query.value} error=${error} onQuery=${(one) => { query.value = one; }} /></div>
    <form class="form" onSubmit=${work.submit}><${Field} label=${t("announcements.text")}><${TextArea} rows="3" required
      maxlength="400" ...${bound(text)} /><//>
      <div class="field" role="group" aria-label=${t("announcements.ways")}><span
        class="label">${t("announcements.ways")}</span>${WAYS.map((way) => html`<${Check} key=${way}
        label=${t(`announcements.way.${way}`)} checked=${ways.value.has(way)}
        onValue=${(on) => { const after = new Set(ways.value); if (on) after.add(way); else after.delete(way); ways.value = after; }} />`)}</div>
      <div class="pair"><${Field} label=${t("life")}><${Select} ...${bound(life)} choices=${LIVES.map(([one, name]) => [one, t(`life.${name}`)])} /><//>
        <${Field} label=${t("jobs.quiet")} hint=${t("jobs.quiet-hint")}><${TextInput} ...${bound(quiet)} pattern=${QUIET.source} placeholder="22:00-07:00" /><//>
        <${Field} label=${t("jobs.halt-field")} hint=${t("announcements.halt-hint")}><${NumberInput} min="0" max="100" required ...${bound(halt)} /><//></div>
      ${error?.code !== "bad-filter" && html`<${Fault} error=${error} />`}
      <${Submit} work=${work} icon="speaker" disabled=${!fresh || !reached(preview)}>${t("announcements.go")}<//></form></div><//>
    <${Card} title=${t("jobs.preview")}>${preview ? html`<${DryRun} of=${preview} />` : html`<${Loading} />`}<//></div>`;
}
