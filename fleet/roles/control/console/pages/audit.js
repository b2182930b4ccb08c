// Who changed what.
import { Badge, bound, Button, Dialog, Empty, go, Head, html, ListTable, put, save, t, TextInput, Time, to, useList,
  useNone, useSignal } from "../kit.js";
import { Diff } from "../parts/diff.js";

/** A link to what an entry is about, if it has a page. @param {{object: string}} props */
function About({ object }) {
  const [noun, id] = [object.slice(0, object.indexOf("/")), object.slice(object.indexOf("/") + 1)];
  const page = { device: "devices", agent: "agents", group: "groups", job: "jobs",
    conversation: "conversations" }[noun];
  return page && id ? html`<a class="wrap" href=${to([page, id])}>${object}</a>` : html`<span
    class="wrap">${object}</span>`;
}

export default function Audit({ query }) {
  const actor = useSignal(query.actor ?? ""), action = useSignal(query.action ?? ""),
    object = useSignal(query.object ?? ""), shown = useNone();
  const wanted = { actor: query.actor, action: query.action, object: query.object };
  const entries = useList("/audit", { ...wanted, limit: 100 });
  const field = (of, name) => html`<div style=${{ flex: "1 1 160px" }}><${TextInput} type="search" ...${bound(of)} placeholder=${t(`audit.${name}`)} aria-label=${t(`audit.${name}`)} />
    </div>`;
  return html`<${Head} title=${t("page.audit")} about=${t("audit.about")}><${Button} icon="save"
    onClick=${() => save("/audit:export", "audit.ndjson", wanted)}>${t("export")}<//><//>
    <form class="row" role="search" onSubmit=${(event) => { event.preventDefault(); go(["audit"],
      { actor: actor.value.trim(), action: action.value.trim(), object: object.value.trim() }); }}>
      ${field(actor, "actor")}${field(action, "action")}${field(object, "object")}<${Button} type="submit"
        icon="search">${t("search")}<//></form>
    <${ListTable} of=${entries} label=${t("page.audit")} row=${(one) => one.id} empty=${html`<${Empty} icon="audit"
      title=${t("audit.none")}>${t("audit.none-about")}<//>`} columns=${[
      { name: t("time"), show: (one) => html`<${Time} at=${one.at} />` },
      { name: t("audit.actor"), show: (one) => html`<span class="wrap">${one.actor}</span>` },
      { name: t("audit.action"), show: (one) => html`<${Badge}>${one.action}<//>` },
      { name: t("audit.object"), wide: true, show: (one) => html`<${About} object=${one.object} />` },
      { name: t("audit.source"), wide: true, show: (one) => html`<span class="muted mono small">${one.source}</span>` },
      { name: "", right: true, show: (one) => html`<${Button} kind="quiet" icon="info" label=${t("details")}
        onClick=${put(shown, one)} />` },
    ]} />
    ${shown.value && html`<${Dialog} wide title=${`${shown.value.action} · ${shown.value.object}`}
      onClose=${put(shown, null)}><dl class="facts"><dt>${t("time")}</dt><dd><${Time}
      at=${shown.value.at} plain /></dd><dt>${t("audit.actor")}</dt><dd>${shown.value.actor}</dd>
      <dt>${t("audit.object")}</dt><dd><${About} object=${shown.value.object} /></dd><dt>${t("audit.source")}</dt><dd
        class="mono">${shown.value.source}</dd><dt>${t("audit.request")}</dt><dd
        class="mono small">${shown.value.request || "–"}</dd></dl>
      <h3>${t("agents.differences")}</h3><${Diff} before=${shown.value.before ?? {}} after=${shown.value.after ?? {}}
        label=${t("agents.differences")} /><//>`}`;
}
