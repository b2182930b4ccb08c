// Agents: how the server hears, thinks and speaks with some devices.
import { ask, attempt, Badge, bound, Button, Card, Empty, Field, FormDialog, get, go, Head,
  html, ListTable, Loaded, may, Note, number, put, say, sayFault, Select, span, Submit, t, Tabs, TextArea, TextInput,
  Time, to, useGet, useList, useLoad, useNone, useSignal, useWork } from "../kit.js";
import { AgentEditor } from "../parts/agent-editor.js";
import { Diff } from "../parts/diff.js";
import { quoted } from "../parts/filter.js";
import { Ask } from "../parts/job-state.js";

function List() {
  const agents = useList("/agents"), making = useSignal(false);
  const make = may("agents:write") && html`<${Button} icon="plus" kind="main-action"
    onClick=${put(making, true)}>${t("agents.make")}<//>`;
  return html`<${Head} title=${t("page.agents")} about=${t("agents.about")}>${make}<//>
    <${ListTable} of=${agents} label=${t("page.agents")} row=${(one) => one.id} empty=${html`<${Empty} icon="agent"
      title=${t("agents.none")} action=${make}>${t("agents.none-about")}<//>`} columns=${[
      { name: t("query.name"), show: (one) => html`<a class="name" href=${to(["agents", one.id])}>${one.name}</a>` },
      { name: t("agents.live"), show: (one) => (one.live ? html`<${Badge} kind="good">${t("agents.version",
        { number: one.live })}<//>` : html`<${Badge}>${t("agents.unpublished")}<//>`) },
      { name: t("query.language"), wide: true, show: (one) => one.draft.language ?? "–" },
      { name: t("agents.voice"), wide: true, show: (one) => one.draft.voice.name ?? one.draft.voice.provider ?? "–" },
      { name: t("query.notes"), wide: true, show: (one) => html`<span class="muted">${one.notes.slice(0, 80)}</span>` },
    ]} />${making.value && html`<${Make} onClose=${put(making, false)} />`}`;
}

const TEMPLATES = ["plain", "child", "teacher", "concierge"];

function Make({ onClose }) {
  const name = useSignal(""), template = useSignal("plain");
  const work = useWork(async () => {
    const draft = template.value === "plain" ? {} : { prompt: t(`agents.template.${template.value}-prompt`) };
    const made = await ask("POST /agents", { body: { name: name.value.trim(), draft } });
    onClose();
    go(["agents", made.id]);
  });
  return html`<${FormDialog} title=${t("agents.make")} onClose=${onClose} work=${work}
    action=${t("add")}>
    <${Field} label=${t("query.name")} hint=${t("form.name-hint")}><${TextInput} ...${bound(name)} required
      pattern="[A-Za-z0-9._\\-]{1,63}" autofocus /><//>
    <${Field} label=${t("agents.template")}><${Select} ...${bound(template)} choices=${TEMPLATES.map((one) => [one,
      t(`agents.template.${one}`)])} /><//><//>`;
}

function One({ id, tab = "edit" }) {
  const agent = useGet(`/agents/${id}`), versions = useLoad(async (signal) => (await get(`/agents/${id}/versions`,
    { limit: 100 }, signal)).items, [id]);
  const publishing = useSignal(false), removing = useSignal(false);
  const again = () => { agent.again(); versions.again(); };
  return html`<${Loaded} of=${agent}>${(found) => {
    const live = versions.data?.find((one) => one.live);
    return html`<${Head} title=${found.name} back=${{ path: ["agents"], name: t("page.agents") }}>
      ${found.live ? html`<${Badge} kind="good">${t("agents.version", { number: found.live })}<//>`
        : html`<${Badge}>${t("agents.unpublished")}<//>`}
      ${may("agents:write") && html`<${Button} kind="danger quiet" icon="trash" label=${t("delete")}
        onClick=${put(removing, true)} /><${Button} kind="main-action" icon="play"
        onClick=${put(publishing, true)}>${t("agents.publish")}<//>`}<//>
      <${Tabs} label=${found.name} current=${tab} tabs=${["edit", "try", "versions", "assignments"].map((one) => [one,
        t(`agents.tab.${one}`), to(["agents", id, ...(one === "edit" ? [] : [one])])])} />
      ${tab === "edit" && html`<div class="columns"><${AgentEditor} key=${id} agent=${found} onSaved=${agent.set} />
        <${Try} id=${id} /></div>`}
      ${tab === "try" && html`<${Try} id=${id} />`}
      ${tab === "versions" && html`<${Versions} agent=${found} versions=${versions} again=${again} />`}
      ${tab === "assignments" && html`<${Assignments} id=${Number(id)} published=${found.live > 0} />`}
      ${publishing.value && html`<${Count} agent=${found} before=${live?.document ?? {}} after=${found.draft}
        onClose=${put(publishing, false)} again=${again} />`}
      ${removing.value && html`<${Ask} title=${t("delete-of", { name: found.name })} action=${t("delete")}
        typed=${found.name} onClose=${put(removing, false)} verb=${`POST /agents/${id}:preview`} body=${{ deleted: true }}
        about=${t("agents.delete-about")} run=${async (most) => { await ask(`DELETE /agents/${id}`, { query: { most },
          version: found.version }); say(t("done")); go(["agents"]); }} />`}`;
  }}<//>`;
}

/** Let another version count, after a look at what differs and whom it concerns. @param {{number?: number, [more: string]: any}} props  number: of an earlier one; else the draft is published */
function Count({ agent, number: to = 0, before, after, onClose, again }) {
  const roll = (body) => ask(`POST /agents/${agent.id}:rollback`, { body, version: agent.version });
  const kind = to ? "rollback" : "publish";
  const run = async (most) => {
    const made = await (to ? roll({ number: to, most }) : ask(`POST /agents/${agent.id}:publish`, { query: { most },
      version: agent.version }));
    say(t(to ? "agents.rolled-back" : "agents.published", { number: made.number }), !to && agent.live ? { undo: () =>
      attempt(async () => { await ask(`POST /agents/${agent.id}:rollback`, { body: { number: agent.live } }); again(); }) }
      : {});
    again();
  };
  return html`<${Ask} wide kind=${to ? undefined : "main-action"} title=${t(to ? "agents.rollback"
    : "agents.publish-title")} action=${t(`agents.${kind}`)} about=${t(`agents.${kind}-about`, { number: to })}
    verb=${`POST /agents/${agent.id}:preview`} body=${{}} onClose=${onClose} run=${run}><${Diff} before=${before}
    after=${after} label=${t(to ? "agents.rollback" : "agents.differences")} /><//>`;
}

/** A conversation in text with the model of the draft; each question stands alone. */
function Try({ id }) {
  const text = useSignal(""), said = useSignal(/** @type {any[]} */ ([]));
  const work = useWork(async () => {
    const question = text.value;
    const answer = await ask(`POST /agents/${id}:try`, { body: { text: question } });
    said.value = [...said.value, { question, ...answer }];
    // The next question may have been begun meanwhile.
    if (text.value === question) text.value = "";
  });
  return html`<${Card} title=${t("agents.tab.try")}><div class="stack"><p class="muted">${t("agents.try-about")}</p>
    <div class="talk" role="log" aria-label=${t("agents.tab.try")}>${said.value.map((one, place) => html`<div
      class="turn" key=${place}><div class="said user">${one.question}</div><div class="said answer">${one.text}</div>
      <div class="meta"><span>${span(one.seconds * 1000)}</span><span>${t("conversations.tokens",
        { input: number(one.input_tokens), output: number(one.output_tokens) })}</span></div></div>`)}</div>
    ${may("agents:write") ? html`<form class="form" onSubmit=${work.submit}><${Field} label=${t("agents.question")}>
      <${TextArea} rows="2" required maxlength="4000" ...${bound(text)}
      onKeyDown=${(event) => { if (event.key === "Enter" && (event.ctrlKey
        || event.metaKey)) event.currentTarget.form.requestSubmit(); }} /><//>
      <${Submit} work=${work}>${t("send")}<//></form>` : html`<${Note}>${t("agents.try-scope")}<//>`}</div><//>`;
}

function Versions({ agent, versions, again }) {
  const shown = useSignal(agent.live), back = useNone();
  return html`<${Loaded} of=${versions}>${(items) => html`<${Card}
    title=${t("agents.tab.versions")}>${items.length === 0 ? html`<${Empty} icon="agent"
    title=${t("agents.no-versions")}>${t("agents.no-versions-about")}<//>`
    : html`<div class="stack">${items.map((one, place) => html`<section key=${one.number} class="stack tight"><div
      class="row apart"><div class="row"><strong>${t("agents.version", { number: one.number })}</strong>${one.live
      && html`<${Badge} kind="good">${t("agents.live")}<//>`}
        <span class="muted small">${one.author} · <${Time} at=${one.created} /></span></div>
        <div class="row"><${Button} kind="quiet" aria-expanded=${String(shown.value === one.number)}
          onClick=${() => { shown.value = shown.value === one.number ? 0 : one.number; }}>${t("agents.differences")}<//>
        ${!one.live && may("agents:write") && html`<${Button} icon="retry"
          onClick=${put(back, one)}>${t("agents.rollback")}<//>`}</div></div>
      ${shown.value === one.number && html`<${Diff} before=${items[place + 1]?.document ?? {}} after=${one.document}
        label=${t("agents.differences")} />`}</section>`)}</div>`}<//>
    ${back.value && html`<${Count} agent=${agent} number=${back.value.number} before=${items.find((one) =>
      one.live)?.document ?? {}} after=${back.value.document} onClose=${put(back, null)} again=${again} />`}`}<//>`;
}

const REMOVE = "assignments:remove";

function Assignments({ id, published }) {
  const given = useLoad(async (signal) => {
    const [assignments, groups] = await Promise.all([get("/assignments", { limit: 500 }, signal), get("/groups",
      { limit: 500 }, signal)]);
    return { assignments: assignments.items.filter((one) => one.agent === id), groups: groups.items };
  }, [id]);
  const whom = useSignal("site"), device = useSignal(""), group = useSignal(""), rank = useSignal(0);
  const target = () => (whom.value === "site" ? { site: true } : whom.value === "group"
    ? { group: Number(group.value), rank: rank.value } : { device: device.value.trim() });
  const sure = useNone();
  /** Give the agent, or take it away, if not more devices would change than was said. */
  const run = async (verb, body, most) => {
    const { devices } = await ask(`POST /${verb}`, { body: { ...body, most } });
    const undo = async () => { await ask(`POST /agents/${id}:assign`, { body: { ...body, most } }).catch(sayFault);
      given.again(); };
    say(t(verb === REMOVE ? "agents.unassigned" : "agents.assigned", { count: number(devices) }), verb === REMOVE
      ? { undo } : {});
    given.again();
  };
  // Many devices at once: first which, and the way by which a few get it before the others.
  const begin = async (verb, body) => {
    const preview = await ask("POST /assignments:preview", { body: { ...body, agent: verb === REMOVE ? null : id } });
    if (body.device) return run(verb, body, preview.changing);
    const group = given.data?.groups.find((one) => one.id === body.group);
    sure.value = { verb, body, of: preview, query: group ? group.query || `group=${quoted(group.name)}`
      : "online OR online=false" };
  };
  const work = useWork(() => begin(`agents/${id}:assign`, target()));
  const remove = ({ device: mac, group: ref, site, rank: of }) => attempt(() => begin(REMOVE, site ? { site } : ref
    ? { group: ref, rank: of } : { device: mac }));
  return html`<${Loaded} of=${given}>${({ assignments, groups }) => html`${!published && html`<${Note}
    kind="warn">${t("agents.assign-unpublished")}<//>`}<div class="cards">
    <${Card} title=${t("agents.tab.assignments")}>${assignments.length === 0 ? html`<${Empty} icon="target"
      title=${t("agents.no-assignments")}>${t("agents.no-assignments-about")}<//>`
      : html`<ul class="stack tight">${assignments.map((one) => html`<li class="row apart" key=${JSON.stringify(one)}>
        <span>${one.site ? t("agents.site") : one.group
        ? html`${t("query.group")}: <strong>${groups.find((found) => found.id === one.group)?.name ?? one.group}</strong>` : html`<a class="mono" href=${to(["devices", one.device])}>${one.device}</a>`}</span>
        ${may("agents:write") && html`<${Button} kind="quiet" icon="trash" label=${t("agents.unassign")}
          onClick=${() => remove(one)} />`}</li>`)}</ul>`}<//>
    ${may("agents:write") && html`<${Card} title=${t("agents.assign")}><form class="form" onSubmit=${work.submit}>
      <${Field} label=${t("agents.whom")}><${Select} ...${bound(whom)}
        choices=${[["site", t("agents.site")], ...(groups.length ? [["group", t("query.group")]] : []), ["device",
        t("query.device")]]} /><//>
      ${whom.value === "group" && html`<${Field} label=${t("query.group")}><${Select} ...${bound(group)} required choices=${[["", "–"], ...groups.map((one) => [String(one.id),
        one.name])]} /><//>`}
      ${whom.value === "device" && html`<${Field} label="MAC"><${TextInput} class="mono" required
        ...${bound(device)} placeholder="02:00:00:00:00:01" /><//>`}
      <p class="muted small">${t("agents.order")}</p><${Submit}
        work=${work}>${t("assign")}<//></form><//>`}</div>
    ${sure.value && html`<${Assign} ...${sure.value} id=${id} onClose=${put(sure, null)} run=${(most) => run(
      sure.value.verb, sure.value.body, most)} />`}`}<//>`;
}

/** Ask with the dry run of an assignment. */
function Assign({ verb, query, id, ...more }) {
  const title = t(verb === REMOVE ? "agents.unassign" : "agents.assign");
  return html`<${Ask} ...${more} title=${title} action=${verb === REMOVE ? title : t("assign")}
    about=${t("agents.assign-about")}>${verb !== REMOVE && may("jobs:write") && html`<p><a href=${to(["jobs"], { make: 1,
      kind: "agent", agent: id, query })}>${t("agents.assign-job")}</a></p>`}<//>`;
}

export default function Agents({ parts }) {
  return parts.length ? html`<${One} key=${parts[0]} id=${parts[0]} tab=${parts[1]} />` : html`<${List} />`;
}
