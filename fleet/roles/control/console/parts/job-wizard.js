// A new job in three steps: what, where, how. It begins only after a look at what it would do.
import { ask, Button, Card, Check, Confirm, Fault, go, Head, html, number, put, say, t, useSignal,
  useWork } from "../kit.js";
import { Filter } from "./filter.js";
import { DryRun, reached, useDryRun } from "./job-state.js";
import { How, howOf, isReady, isRisky, USUAL, What, whatOf } from "./job-plan.js";

const STEPS = ["what", "where", "how"];
/** What an address may choose. */
const CHOSEN = ["kind", "query", "image", "agent", "tool"];

/** @param {{query: Record<string, string>}} props  query: of the address; it may name the kind and what belongs to it */
export function JobWizard({ query: given }) {
  const values = useSignal({ kind: "tool", tool: "", arguments: {}, image: "", how: "reboot", force: false, agent: "",
    query: "", name: "", continuous: false, ...USUAL,
    ...Object.fromEntries(CHOSEN.filter((name) => given[name]).map((name) => [name, given[name]])) });
  const set = (name) => (value) => { values.value = { ...values.value, [name]: value }; };
  const step = useSignal(0), sure = useSignal(false),
    tools = useSignal(/** @type {any[]|null} */ (null));
  const now = values.value, ready = isReady(now, tools.value);
  const usual = (now.kind === "tool" && now.tool) || t(`jobs.kind.${now.kind}`);
  const body = (count) => ({ name: (now.name.trim() || usual).slice(0, 63), query: now.query, continuous: now.continuous,
    ...whatOf(now), ...howOf(now, count) });
  const { preview, fresh, error } = useDryRun("POST /jobs:preview", body(0), ready);
  const count = preview ? reached(preview) : 0;
  const work = useWork(async () => {
    const made = await ask("POST /jobs", { body: body(count) });
    say(t(made.starts ? "jobs.planned" : "jobs.begun"));
    go(["jobs", made.id]);
  });
  const last = step.value === STEPS.length - 1;
  const submit = (event) => {
    event.preventDefault();
    if (!last) step.value += 1;
    else if (isRisky(now, tools.value)) sure.value = true;
    else void work.submit();
  };
  return html`<${Head} title=${t("jobs.make")} about=${t("jobs.make-about")} back=${{ path: ["jobs"],
    name: t("page.jobs") }} />
    <ol class="steps">${STEPS.map((one, place) => html`<li key=${one} class=${place < step.value ? "done" : ""}
      aria-current=${place === step.value ? "step" : undefined}>${t(`jobs.step.${one}`)}</li>`)}</ol>
    <div class="columns"><${Card}>
      ${step.value === 1 && html`<div class="form"><${Filter} value=${now.query} label=${t("groups.query")} eager
        error=${error} onQuery=${set("query")} /><p class="muted small">${t("jobs.where-about")}</p></div>`}
      <form class="form" onSubmit=${submit} style=${{ marginTop: step.value === 1 ? "16px" : 0 }}>
      ${step.value === 0 && html`<${What} values=${now} set=${set} tools=${tools} />`}
      ${step.value === 1 && html`<${Check} checked=${now.continuous} label=${t("jobs.continuous")}
        onValue=${set("continuous")} />`}
      ${step.value === 2 && html`<${How} values=${now} set=${set} name=${usual} count=${count} />`}
      <${Fault} error=${work.error ?? (step.value === 1 && error?.code === "bad-filter" ? null : error)} />
      <div class="actions">${step.value > 0 && html`<${Button}
        onClick=${() => { step.value -= 1; }}>${t("back")}<//>`}<${Button} type="submit" kind="main-action"
        busy=${work.busy} disabled=${!ready || (last && !fresh)}>${t(!last ? "next" : now.starts
        ? "jobs.plan" : "jobs.begin")}<//></div></form><//>
      <${Card} title=${t("jobs.preview")}>${preview ? html`<${DryRun} of=${preview} />` : html`<p
          class="muted">${t("jobs.preview-none")}</p>`}<//></div>
    ${sure.value && html`<${Confirm} title=${t("jobs.sure")} action=${t("jobs.begin")}
      typed=${String(count)} onClose=${put(sure, false)} run=${work.submit}>
      <p>${t("jobs.sure-about", { count: number(count) })}</p><//>`}`;
}
