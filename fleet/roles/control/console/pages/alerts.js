// What needs a person, and the rules by which it is found.
import { ask, Badge, Button, Card, Check, Choices, Confirm, Empty, Field, go, Head, html, ListTable, Loaded, may,
  number, NumberInput, put, say, sayFault, Submit, t, Tabs, Time, to, useEvents, useGet, useList, useNames,
  useSignal, useWork } from "../kit.js";

export default function Alerts({ parts, query }) {
  const tab = parts[0] === "rules" ? "rules" : "list";
  if (parts.length && tab === "list") return html`<${One} key=${parts[0]} id=${parts[0]} />`;
  return html`<${Head} title=${t("page.alerts")} about=${t("alerts.about")} />
    <${Tabs} label=${t("page.alerts")} current=${tab} tabs=${[["list", t("page.alerts"), to(["alerts"])],
      ["rules", t("alerts.rules"), to(["alerts", "rules"])]]} />
    ${tab === "rules" ? html`<${Rules} />` : html`<${List} query=${query} />`}`;
}

function List({ query }) {
  const all = query.all === "1", alerts = useList("/alerts", { open: all ? undefined : true });
  useEvents(["alert"], alerts.again, 500);
  const choice = html`<${Choices} label=${t("alerts.which")} value=${all ? "1" : ""}
    onValue=${(one) => go(["alerts"], { all: one })}
    choices=${[["", t("alerts.open")], ["1", t("all")]]} />`;
  return html`<${ListTable} of=${alerts} label=${t("page.alerts")} row=${(one) => one.id} aside=${choice}
    empty=${html`<${Empty} icon="check" title=${t("alerts.none")}>${t("alerts.none-about")}<//>`} columns=${[
      { name: t("alerts.rule"), show: (one) => html`<a class="name" href=${to(["alerts",
        one.id])}>${t(`alerts.rule.${one.rule}`)}</a>` },
      { name: t("query.state"), show: (one) => html`<${Badge} kind=${one.closed ? "" : "bad"} dot>${t(one.closed
        ? "alerts.closed" : "alerts.open")}<//>` },
      { name: t("alerts.text"), wide: true, show: (one) => html`<span class="small muted wrap">${one.text}</span>` },
      { name: t("alerts.subjects"), right: true, show: (one) => `${number(one.present)} / ${number(one.subjects)}` },
      { name: t("alerts.opened"), show: (one) => html`<${Time} at=${one.opened} />` },
    ]} />`;
}

function One({ id }) {
  const alert = useGet(`/alerts/${id}`), subjects = useList(`/alerts/${id}/subjects`), closing = useSignal(false);
  const names = useNames((subjects.data ?? []).map((one) => one.device).filter(Boolean));
  useEvents(["alert"], () => { alert.again(); subjects.again(); }, 500);
  const about = (one) => (one.device ? html`<a class="name" href=${to(["devices",
    one.device])}>${names.get(one.device) || one.device}</a>`
    : /^\d+$/.test(one.name) ? html`<a class="name" href=${to(["jobs", one.name])}>${t("alerts.job",
      { id: one.name })}</a>` : html`<code class="wrap">${one.name}</code>`);
  return html`<${Loaded} of=${alert}>${(found) => html`
    <${Head} title=${t(`alerts.rule.${found.rule}`)} about=${found.text} back=${{ path: ["alerts"],
      name: t("page.alerts") }}>
      <${Badge} kind=${found.closed ? "" : "bad"} dot>${t(found.closed ? "alerts.closed" : "alerts.open")}<//>
      ${!found.closed && may("alerts:write") && html`<${Button} kind="main-action" icon="check"
        onClick=${put(closing, true)}>${t("alerts.acknowledge")}<//>`}<//>
    <${Card}><dl class="facts"><dt>${t("alerts.opened")}</dt><dd><${Time} at=${found.opened} plain /></dd>
      ${found.closed && html`<dt>${t("alerts.closed")}</dt><dd><${Time} at=${found.closed} plain
        /> ${found.closed_by}</dd>`}
      <dt>${t("alerts.subjects")}</dt><dd>${t("alerts.present", { present: number(found.present),
        subjects: number(found.subjects) })}</dd></dl><//>
    <${ListTable} of=${subjects} title=${t("alerts.subjects")} label=${t("alerts.subjects")}
      row=${(one) => one.device + one.name}
      empty=${html`<${Empty} icon="check" title=${t("none")} />`} columns=${[
        { name: t("query.name"), show: about },
        { name: t("query.state"), show: (one) => html`<${Badge} kind=${one.over ? "good" : "bad"}>${t(one.over
          ? "alerts.over" : "alerts.lasts")}<//>` },
        { name: t("alerts.text"), wide: true, show: (one) => html`<span class="small wrap">${one.text}</span>` },
        { name: t("jobs.since"), show: (one) => html`<${Time} at=${one.since} />` }]} />
    ${closing.value && html`<${Confirm} title=${t("alerts.acknowledge")} action=${t("alerts.acknowledge")}
      onClose=${put(closing, false)}
      run=${async () => { alert.set(await ask(`POST /alerts/${id}:acknowledge`)); say(t("done")); }}>
        <p>${t("alerts.acknowledge-about")}</p><//>`}`}<//>`;
}

function Rules() {
  const rules = useGet("/alert-rules");
  return html`<${Loaded} of=${rules}>${({ items }) => html`<div class="cards">${items.map((one) => html`
    <${Rule} key=${one.rule} rule=${one} again=${rules.again} />`)}</div>`}<//>`;
}

function Rule({ rule, again }) {
  const enabled = useSignal(rule.enabled), values = useSignal(rule.thresholds);
  const changed = enabled.value !== rule.enabled || JSON.stringify(values.value) !== JSON.stringify(rule.thresholds);
  const work = useWork(async () => {
    const back = { rule: rule.rule, enabled: rule.enabled, thresholds: rule.thresholds };
    await ask("PATCH /alert-rules", { body: { ...back, enabled: enabled.value, thresholds: values.value } });
    say(t("saved"), { undo: async () => { await ask("PATCH /alert-rules", { body: back }).catch(sayFault); again(); } });
    again();
  });
  return html`<${Card} title=${t(`alerts.rule.${rule.rule}`)}><form class="form" onSubmit=${work.submit}><p
    class="muted">${t(`alerts.rule.${rule.rule}-about`)}</p>
    <${Check} label=${t("alerts.enabled")} checked=${enabled.value} disabled=${!may("alerts:write")}
      onValue=${(on) => { enabled.value = on; }} />
    <div class="pair">${Object.entries(values.value).map(([name, value]) => html`<${Field} key=${name}
      label=${t(`alerts.threshold.${name}`)}>
      <${NumberInput} step="any" min="0" required value=${value} disabled=${!may("alerts:write")}
        onValue=${(given) => { values.value = { ...values.value, [name]: given ?? 0 }; }} /><//>`)}</div>
    ${changed && html`<${Submit} work=${work}>${t("save")}<//>`}</form><//>`;
}
