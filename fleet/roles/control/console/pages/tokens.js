// Tokens of people and programs.
import { ask, Badge, bound, Button, Check, Confirm, Dialog, Empty, Field, FormDialog, Head, html, ListTable, me,
  Note, put, say, Select, t, TextInput, Time, useList, useNone, useSignal, useWork } from "../kit.js";

const LIVES = /** @type {[string, number|null][]} */ ([["month", 30], ["quarter", 90], ["year", 365], ["ever", null]]);
const READING = /:read$/;

export default function Tokens() {
  const tokens = useList("/tokens", { limit: 100 }), making = useSignal(false),
    gone = useNone();
  const make = html`<${Button} icon="plus" kind="main-action"
    onClick=${put(making, true)}>${t("tokens.make")}<//>`;
  return html`<${Head} title=${t("page.tokens")} about=${t("tokens.about")}>${make}<//>
    <${ListTable} of=${tokens} label=${t("page.tokens")} row=${(one) => one.id} empty=${html`<${Empty} icon="key"
      title=${t("tokens.none")} action=${make}>${t("tokens.none-about")}<//>`} columns=${[
      { name: t("query.name"), show: (one) => html`<strong>${one.name}</strong>${one.name === me.value?.name
        && me.value?.kind === "token" && html` <${Badge} kind="accent">${t("tokens.mine")}<//>`}` },
      { name: t("tokens.scopes"), wide: true, show: (one) => html`<span class="small muted wrap"
        title=${one.scopes.join(", ")}>${one.scopes.length > 4 ? t("tokens.scope-count", { count: one.scopes.length })
        : one.scopes.join(", ")}</span>` },
      { name: t("tokens.used"), show: (one) => (one.last_used ? html`<${Time} at=${one.last_used} />` : html`<span
        class="muted">${t("never")}</span>`) },
      { name: t("jobs.expires"), wide: true, show: (one) => (one.expires ? html`<${Time} at=${one.expires} plain />`
        : html`<span class="muted">${t("tokens.endless")}</span>`) },
      { name: "", right: true, show: (one) => html`<${Button} kind="danger quiet" icon="trash"
        label=${t("tokens.revoke", { name: one.name })} onClick=${put(gone, one)} />` },
    ]} />
    ${making.value && html`<${Make} onClose=${put(making, false)} again=${tokens.again} />`}
    ${gone.value && html`<${Confirm} title=${t("tokens.revoke", { name: gone.value.name })}
      action=${t("device.revoke")} onClose=${put(gone, null)}
      run=${async () => { await ask(`DELETE /tokens/${gone.value.id}`); say(t("done")); tokens.again(); }}>
      <p>${t("tokens.revoke-about")}</p><//>`}`;
}

function Make({ onClose, again }) {
  const mine = /** @type {string[]} */ (me.value?.scopes ?? []);
  const name = useSignal(""), scopes = useSignal(new Set(mine.filter((one) => READING.test(one)))),
    life = useSignal("quarter"), made = useSignal("");
  const work = useWork(async () => {
    const days = LIVES.find(([one]) => one === life.value)?.[1];
    const answer = await ask("POST /tokens", { body: { name: name.value.trim(), scopes: [...scopes.value], ...(days
      ? { expires: new Date(Date.now() + days * 86_400_000).toISOString() } : {}) } });
    made.value = answer.token;
    again();
  });
  if (made.value) return html`<${Dialog} title=${t("tokens.made")} onClose=${onClose} footer=${html`<${Button}
    icon="copy" onClick=${() => navigator.clipboard?.writeText(made.value).then(() => say(t("copied")))}>${t("copy")}<//><${Button} kind="main-action" onClick=${onClose}>${t("tokens.kept")}<//>`}><${Note} kind="warn">${t("tokens.once")}<//><pre class="code" tabindex="0">${made.value}</pre><//>`;
  return html`<${FormDialog} title=${t("tokens.make")} onClose=${onClose} work=${work}
    action=${t("add")} disabled=${scopes.value.size === 0}>
    <div class="pair"><${Field} label=${t("query.name")} hint=${t("form.name-hint")}><${TextInput} ...${bound(name)} required pattern="[A-Za-z0-9._\\-]{1,63}" autofocus /><//>
      <${Field} label=${t("life")}><${Select} ...${bound(life)}
        choices=${LIVES.map(([one]) => [one, t(`life.${one}`)])} /><//></div>
    <div class="field"><span class="label">${t("tokens.scopes")}</span><div class="row tight"><${Button}
      onClick=${() => { scopes.value = new Set(mine.filter((one) => READING.test(one))); }}>${t("tokens.read-only")}<//><${Button} onClick=${() => { scopes.value = new Set(mine); }}>${t("tokens.everything")}<//></div>
      <div class="scopes" role="group" aria-label=${t("tokens.scopes")}
        tabindex="0">${mine.map((scope) => html`<${Check} key=${scope} label=${scope}
        checked=${scopes.value.has(scope)}
        onValue=${(on) => { const after = new Set(scopes.value); if (on) after.add(scope); else after.delete(scope); scopes.value = after; }} />`)}</div></div><//>`;
}
