// Accounts of operators.
import { ask, attempt, Badge, bound, Button, Confirm, Empty, Field, FormDialog, Head, html, ListTable, me, put, say,
  sayFault, Select, t, TextInput, Time, useList, useNone, useSignal, useWork } from "../kit.js";

const ROLES = ["viewer", "operator", "owner"];
const roles = () => ROLES.map((one) => [one, t(`accounts.role.${one}`)]);
const PASSWORD = { type: "password", autocomplete: "new-password", minlength: 12, required: true };

export default function Accounts() {
  const accounts = useList("/accounts", { limit: 100 });
  const making = useSignal(false), gone = useNone(),
    reset = useNone();
  const change = async (one, body) => {
    await attempt(async () => {
      await ask(`PATCH /accounts/${one.id}`, { body });
      say(t("saved"), { undo: async () => {
        await ask(`PATCH /accounts/${one.id}`, { body: { role: one.role, disabled: one.disabled } }).catch(sayFault);
        accounts.again();
      } });
    });
    accounts.again();
  };
  const make = html`<${Button} icon="plus" kind="main-action"
    onClick=${put(making, true)}>${t("accounts.make")}<//>`;
  const mine = (one) => me.value?.kind === "account" && me.value.name === one.name;
  return html`<${Head} title=${t("page.accounts")} about=${t("accounts.about")}>${make}<//>
    <${ListTable} of=${accounts} label=${t("page.accounts")} row=${(one) => one.id}
      empty=${html`<${Empty} icon="groups" title=${t("accounts.none")}
        action=${make}>${t("accounts.none-about")}<//>`} columns=${[
        { name: t("query.name"), show: (one) => html`<strong>${one.name}</strong>${mine(one) && html` <${Badge}
          kind="accent">${t("accounts.mine")}<//>`}
          ${one.disabled && html` <${Badge} kind="warn">${t("accounts.disabled")}<//>`}` },
        { name: t("accounts.role"), show: (one) => html`<${Select} value=${one.role} choices=${roles()}
          aria-label=${t("accounts.role-of", { name: one.name })} onValue=${(role) => change(one, { role })} />` },
        { name: t("accounts.seen"), wide: true, show: (one) => html`<${Time} at=${one.last_sign_in} />` },
        { name: "", right: true, show: (one) => html`<span class="row tight" style=${{ justifyContent: "flex-end" }}>
          <${Button} kind="quiet" icon=${one.disabled ? "play" : "pause"} label=${t(one.disabled ? "accounts.enable"
            : "accounts.disable", { name: one.name })}
            onClick=${() => change(one, { disabled: !one.disabled })} />
          <${Button} kind="quiet" icon="key" label=${t("accounts.reset", { name: one.name })}
            onClick=${put(reset, one)} />
          <${Button} kind="quiet" icon="trash" label=${t("delete-of", { name: one.name })}
            onClick=${put(gone, one)} /></span>` },
      ]} />
    ${making.value && html`<${Make} onClose=${put(making, false)} again=${accounts.again} />`}
    ${reset.value && html`<${Reset} account=${reset.value} onClose=${put(reset, null)} />`}
    ${gone.value && html`<${Confirm} title=${t("delete-of", { name: gone.value.name })} action=${t("delete")}
      typed=${gone.value.name}
      onClose=${put(gone, null)}
        run=${async () => { await ask(`DELETE /accounts/${gone.value.id}`); accounts.again(); }}>
      <p>${t("accounts.delete-about")}</p><//>`}`;
}

/** A form in a dialog that sends one request. */
const useSending = (send, onClose) => useWork(async () => {
  await send();
  say(t("done"));
  onClose();
});

function Make({ onClose, again }) {
  const name = useSignal(""), role = useSignal("viewer"), password = useSignal("");
  const work = useSending(async () => {
    await ask("POST /accounts", { body: { name: name.value.trim(), role: role.value, password: password.value } });
    again();
  }, onClose);
  return html`<${FormDialog} title=${t("accounts.make")} onClose=${onClose} work=${work}
    action=${t("add")}>
    <${Field} label=${t("query.name")} hint=${t("form.name-hint")}><${TextInput} ...${bound(name)} required
      autofocus autocomplete="off"
      pattern="[A-Za-z0-9._\\-]{1,63}" /><//>
    <${Field} label=${t("accounts.role")} hint=${t(`accounts.role.${role.value}-about`)}><${Select}
      ...${bound(role)} choices=${roles()} /><//>
    <${Field} label=${t("sign-in.password")} hint=${t("sign-in.password-hint")}><${TextInput} ...${PASSWORD}
      ...${bound(password)} /><//><//>`;
}

function Reset({ account, onClose }) {
  const password = useSignal("");
  const work = useSending(() => ask(`POST /accounts/${account.id}:password`,
    { body: { password: password.value } }), onClose);
  return html`<${FormDialog} title=${t("accounts.reset", { name: account.name })} onClose=${onClose} work=${work}
    action=${t("save")}>
    <p class="muted">${t("accounts.reset-about")}</p>
    <${Field} label=${t("sign-in.password")} hint=${t("sign-in.password-hint")}><${TextInput} ...${PASSWORD} autofocus
      ...${bound(password)} /><//><//>`;
}
