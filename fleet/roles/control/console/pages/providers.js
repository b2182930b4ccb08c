// Endpoints of models that agents name. Keys are written here and never shown again.
import { ask, Badge, Button, Confirm, Empty, Head, html, ListTable, may, put, t, useList, useNone } from "../kit.js";
import { ProviderForm, ProviderTest } from "../parts/provider.js";

export default function Providers() {
  const providers = useList("/providers", { limit: 100 }), editing = useNone(),
    removing = useNone();
  const make = may("providers:write") && html`<${Button} icon="plus" kind="main-action"
    onClick=${() => { editing.value = {}; }}>${t("providers.make")}<//>`;
  return html`<${Head} title=${t("page.providers")} about=${t("providers.about")}>${make}<//>
    <${ListTable} of=${providers} label=${t("page.providers")} row=${(one) => one.id} empty=${html`<${Empty}
      icon="speaker" title=${t("providers.none")} action=${make}>${t("providers.none-about")}<//>`} columns=${[
      { name: t("query.name"), show: (one) => html`<strong>${one.name}</strong>` },
      { name: t("kind"), show: (one) => html`<${Badge} kind="info">${t(`providers.kind.${one.kind}`)}<//>` },
      { name: t("providers.address"), wide: true, show: (one) => html`<span class="mono small wrap">${one.base_url
        || one.adapter}</span>` },
      { name: t("agents.model"), wide: true, show: (one) => one.model || "–" },
      { name: t("providers.key"), wide: true, show: (one) => (one.has_key ? html`<${Badge}
        kind="good">${t("providers.has-key")}<//>` : html`<span class="muted">–</span>`) },
      { name: t("providers.test"), show: (one) => may("providers:write") && one.base_url && html`<${ProviderTest}
        provider=${one} />` },
      { name: "", right: true, show: (one) => may("providers:write") && html`<span class="row tight nowrap"
        style=${{ flexWrap: "nowrap", justifyContent: "flex-end" }}><${Button} kind="quiet" icon="edit"
        label=${t("providers.change", { name: one.name })} onClick=${put(editing, one)} />
        <${Button} kind="quiet" icon="trash" label=${t("delete-of", { name: one.name })}
          onClick=${put(removing, one)} /></span>` },
    ]} />
    ${editing.value && html`<${ProviderForm} provider=${editing.value} onClose=${put(editing, null)}
      done=${providers.again} />`}
    ${removing.value && html`<${Confirm} title=${t("delete-of", { name: removing.value.name })}
      action=${t("delete")} onClose=${put(removing, null)}
      run=${async () => { await ask(`DELETE /providers/${removing.value.id}`); providers.again(); }}>
      <p>${t("providers.delete-about")}</p><//>`}`;
}
