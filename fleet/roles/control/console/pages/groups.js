// Groups: static ones have members, dynamic ones are saved queries.
import { ask, attempt, Badge, bound, Button, Card, Choices, Empty, Fault, Field, FormDialog, go, Head, html,
  LinkButton, ListTable, Loaded, may, number, put, say, t, TextArea, TextInput, to, useGet, useList, useNone,
  useSignal, useWork } from "../kit.js";
import { Filter, quoted } from "../parts/filter.js";
import { Ask } from "../parts/job-state.js";
import { DeviceState } from "./devices.js";

const MAC = /(?:[0-9a-f]{2}[:-]?){5}[0-9a-f]{2}/gi;

export default function Groups({ parts, query }) {
  return parts.length ? html`<${One} key=${parts[0]} id=${parts[0]} />` : html`<${List} query=${query} />`;
}

function List({ query }) {
  const groups = useList("/groups");
  const making = query.make === "1";
  const make = may("groups:write") && html`<${LinkButton} icon="plus" kind="main-action" href=${to(["groups"],
    { make: 1 })}>${t("groups.make")}<//>`;
  return html`<${Head} title=${t("page.groups")} about=${t("groups.about")}>${make}<//>
    <${ListTable} of=${groups} label=${t("page.groups")} row=${(one) => one.id} empty=${html`<${Empty} icon="groups"
      title=${t("groups.none")} action=${make}>${t("groups.none-about")}<//>`} columns=${[
      { name: t("query.name"), show: (one) => html`<a class="name" href=${to(["groups", one.id])}>${one.name}</a>` },
      { name: t("kind"), show: (one) => html`<${Badge} kind=${one.kind === "dynamic" ? "info"
        : ""}>${t(`groups.${one.kind}`)}<//>` },
      { name: t("groups.query"), wide: true, show: (one) => one.query && html`<code class="wrap">${one.query}</code>` },
      { name: t("query.notes"), wide: true, show: (one) => html`<span class="muted">${one.notes}</span>` },
    ]} />${making && html`<${Make} query=${query.query ?? ""} onClose=${() => go(["groups"], {}, true)} />`}`;
}

function Make({ query, onClose }) {
  const marked = /^mac=/.test(query) ? query.match(MAC) ?? [] : [];
  const kind = useSignal(marked.length ? "static" : "dynamic"), name = useSignal(""), text = useSignal(marked.length
    ? "" : query), notes = useSignal("");
  const work = useWork(async () => {
    const made = await ask("POST /groups", { body: { name: name.value.trim(), notes: notes.value,
      query: kind.value === "dynamic" ? text.value.trim() : "" } });
    if (kind.value === "static" && marked.length) await ask(`POST /groups/${made.id}/members:add`,
      { body: { macs: marked } });
    say(t("groups.made", { name: made.name }));
    go(["groups", made.id]);
  });
  return html`<${FormDialog} title=${t("groups.make")} onClose=${onClose} work=${work}
    action=${t("add")}>
    <${Field} label=${t("query.name")}><${TextInput} ...${bound(name)} required maxlength="63" autofocus /><//>
    <div><${Choices} label=${t("kind")} ...${bound(kind)}
      choices=${[["dynamic", t("groups.dynamic")], ["static", t("groups.static")]]} /></div>
    ${kind.value === "dynamic" ? html`<${Field} label=${t("groups.query")} hint=${t("groups.query-hint")}
      fault=${work.error?.code === "bad-filter" ? work.error.detail : undefined}><${TextInput} class="mono" required
      ...${bound(text)} placeholder="tag.site=berlin AND online" /><//>`
      : html`<p class="muted">${marked.length ? t("groups.with-members", { count: number(marked.length) })
        : t("groups.static-about")}</p>`}
    <${Field} label=${t("query.notes")}><${TextArea} rows="2" ...${bound(notes)} /><//><//>`;
}

function One({ id }) {
  const group = useGet(`/groups/${id}`), filter = useSignal(""), removing = useSignal(false), adding = useSignal("");
  const editing = useSignal(false);
  const members = useList(`/groups/${id}/members`, { filter: filter.value,
    fields: "mac,name,board,firmware,online,state" });
  const sure = useNone();
  /** Do something with the group, and ask first if devices get another agent by it. */
  const begin = async (body, run) => {
    const of = await ask(`POST /groups/${id}:preview`, { body });
    if (of.changing) sure.value = { of, run };
    else await run(0);
  };
  const change = async (verb, macs, most) => {
    const { changed, unknown } = await ask(`POST /groups/${id}/members:${verb}`, { body: { macs, most } });
    const back = verb === "add" ? "remove" : "add";
    say(unknown.length ? t("groups.unknown", { macs: unknown.join(", ") }) : t("groups.changed",
      { count: number(changed) }), { kind: unknown.length ? "bad" : "good", undo: changed ? () => attempt(() => change(back,
      macs, most)) : undefined });
    members.again();
  };
  const choose = (verb, macs, after = () => {}) => attempt(() => begin({ [verb]: macs }, async (most) => {
    await change(verb, macs, most);
    after();
  }));
  /** What was typed stays until it is done, and so does what somebody types meanwhile. */
  const add = (event) => {
    event.preventDefault();
    const text = adding.value, macs = text.match(MAC) ?? [];
    if (macs.length) void choose("add", macs, () => { if (adding.value === text) adding.value = ""; });
  };
  return html`<${Loaded} of=${group}>${(found) => html`<${Head} title=${found.name} about=${found.notes}
    back=${{ path: ["groups"], name: t("page.groups") }}><${Badge} kind=${found.kind === "dynamic" ? "info"
    : ""}>${t(`groups.${found.kind}`)}<//>
      ${may("jobs:write") && html`<${LinkButton} icon="jobs" href=${to(["jobs"], { make: 1, query: found.query
        || `group=${quoted(found.name)}` })}>${t("devices.to-job")}<//>`}
      ${may("groups:write") && html`<${Button} kind="quiet" icon="edit" label=${t("edit")}
        onClick=${put(editing, true)} /><${Button} kind="danger quiet" icon="trash" label=${t("delete")}
        onClick=${put(removing, true)} />`}<//>
    ${found.query && html`<${Card} title=${t("groups.query")} aside=${html`<a href=${to(["devices"],
      { filter: found.query })}>${t("groups.show-devices")}</a>`}><${Query} group=${found} begin=${begin}
      set=${(after) => { group.set(after); members.again(); }} /><//>`}
    <${Filter} value=${filter.value} error=${members.error} onQuery=${(text) => { filter.value = text; }} />
    ${found.kind === "static" && may("groups:write") && html`<form class="row"
      onSubmit=${add}>
      <div class="grow" style=${{ minWidth: "220px" }}><${TextInput} class="mono" ...${bound(adding)} placeholder="02:00:00:00:00:01, …" aria-label=${t("groups.add-macs")} /></div><${Button} type="submit"
        icon="plus">${t("groups.add-macs")}<//></form>`}
    <${ListTable} of=${members} label=${t("groups.members")} title=${t("groups.members")} row=${(one) => one.mac}
      empty=${html`<${Empty} icon="devices" title=${t("groups.no-members")}>${t(found.query ? "groups.no-match"
      : "groups.no-members-about")}<//>`} columns=${[
      { name: t("query.name"), show: (one) => html`<a class="name" href=${to(["devices", one.mac])}>${one.name
        || one.mac}</a>` },
      { name: "MAC", wide: true, show: (one) => html`<span class="mono small">${one.mac}</span>` },
      { name: t("query.state"), show: (one) => html`<${DeviceState} device=${one} />` },
      { name: t("query.board"), wide: true, show: (one) => one.board },
      { name: t("query.firmware"), wide: true, show: (one) => one.firmware },
      ...(found.kind === "static" && may("groups:write") ? [{ name: "", right: true, show: (one) => html`<${Button}
        kind="quiet" icon="close" label=${t("groups.remove", { name: one.name || one.mac })}
        onClick=${() => choose("remove", [one.mac])} />` }] : []),
    ]} />
    ${editing.value && html`<${Edit} group=${found} begin=${begin} set=${group.set} onClose=${put(editing, false)} />`}
    ${removing.value && html`<${Ask} title=${t("delete-of", { name: found.name })} action=${t("delete")}
      onClose=${put(removing, false)} verb=${`POST /groups/${id}:preview`} body=${{}} about=${t("groups.delete-about")}
      run=${async (most) => { await ask(`DELETE /groups/${id}`, { query: { most }, version: found.version });
        say(t("done")); go(["groups"]); }} />`}
    ${sure.value && html`<${Ask} ...${sure.value} title=${found.name} action=${t("save")} about=${t("agents.assign-about")}
      onClose=${put(sure, null)} />`}`}<//>`;
}

/** The query of another group may name this one, so that another name gives its members another agent. */
function Edit({ group, begin, set, onClose }) {
  const name = useSignal(group.name), notes = useSignal(group.notes);
  const work = useWork(() => begin({ name: name.value.trim() }, async (most) => {
    set(await ask(`PATCH /groups/${group.id}`, { body: { name: name.value.trim(), notes: notes.value, most },
      version: group.version }));
    say(t("saved"));
    onClose();
  }));
  return html`<${FormDialog} title=${t("edit")} onClose=${onClose} work=${work} action=${t("save")}>
    <${Field} label=${t("query.name")}><${TextInput} ...${bound(name)} required maxlength="63" autofocus /><//>
    <${Field} label=${t("query.notes")}><${TextArea} rows="2" ...${bound(notes)} /><//><//>`;
}

function Query({ group, set, begin }) {
  const error = useNone();
  if (!may("groups:write")) return html`<code class="wrap">${group.query}</code>`;
  return html`<${Filter} value=${group.query} label=${t("groups.query")} error=${error.value} action=${t("save")}
    onQuery=${async (query) => {
    try {
      await begin({ query }, async (most) => {
        set(await ask(`PATCH /groups/${group.id}`, { body: { query, most }, version: group.version }));
        say(t("saved"));
      });
      error.value = null;
    } catch (fault) {
      error.value = fault;
    }
  }} />${error.value && error.value.code !== "bad-filter" && html`<${Fault} error=${error.value} />`}`;
}
