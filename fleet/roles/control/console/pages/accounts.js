// Accounts of operators.
import { ask, Badge, Button, Confirm, Dialog, Empty, Fault, Field, Head, html, ListTable, me, say, sayFault,
  Select, t, TextInput, Time, useList, useSignal } from "../kit.js";

const ROLES = ["viewer", "operator", "owner"];
const roles = () => ROLES.map((one) => [one, t(`accounts.role.${one}`)]);
const PASSWORD = { type: "password", autocomplete: "new-password", minlength: 12, required: true };

export default function Accounts() {
  const accounts = useList("/accounts", { limit: 100 });
  const making = useSignal(false), gone = useSignal(/** @type {any} */ (null)),
    reset = useSignal(/** @type {any} */ (null));
  const change = async (one, body) => {
    try {
      await ask(`PATCH /accounts/${one.id}`, { body });
      say(t("saved"), { undo: async () => {
        await ask(`PATCH /accounts/${one.id}`, { body: { role: one.role, disabled: one.disabled } }).catch(sayFault);
        accounts.again();
      } });
    } catch (fault) {
      sayFault(fault);
    }
    accounts.again();
  };
  const make = html`<${Button} icon="plus" kind="main-action"
    onClick=${() => { making.value = true; }}>${t("accounts.make")}<//>`;
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
            onClick=${() => { reset.value = one; }} />
          <${Button} kind="quiet" icon="trash" label=${t("accounts.delete", { name: one.name })}
            onClick=${() => { gone.value = one; }} /></span>` },
      ]} />
    ${making.value && html`<${Make} onClose=${() => { making.value = false; }} again=${accounts.again} />`}
    ${reset.value && html`<${Reset} account=${reset.value} onClose=${() => { reset.value = null; }} />`}
    ${gone.value && html`<${Confirm} title=${t("accounts.delete", { name: gone.value.name })} action=${t("delete")}
      typed=${gone.value.name}
      onClose=${() => { gone.value = null; }}
        run=${async () => { await ask(`DELETE /accounts/${gone.value.id}`); accounts.again(); }}>
      <p>${t("accounts.delete-about")}</p><//>`}`;
}

/** A form in a dialog that sends one request. */
function useSending(send, onClose) {
  const busy = useSignal(false), error = useSignal(/** @type {any} */ (null));
  return { busy, error, submit: async (event) => {
    event.preventDefault();
    busy.value = true;
    try {
      await send();
      say(t("done"));
      onClose();
    } catch (fault) {
      error.value = fault;
    }
    busy.value = false;
  } };
}

function Make({ onClose, again }) {
  const name = useSignal(""), role = useSignal("viewer"), password = useSignal("");
  const { busy, error, submit } = useSending(async () => {
    await ask("POST /accounts", { body: { name: name.value.trim(), role: role.value, password: password.value } });
    again();
  }, onClose);
  return html`<${Dialog} title=${t("accounts.make")} onClose=${onClose}><form class="form" onSubmit=${submit}>
    <${Field} label=${t("query.name")} hint=${t("form.name-hint")}><${TextInput} value=${name.value} required
      autofocus autocomplete="off"
      pattern="[A-Za-z0-9._\\-]{1,63}" onValue=${(text) => { name.value = text; }} /><//>
    <${Field} label=${t("accounts.role")} hint=${t(`accounts.role.${role.value}-about`)}><${Select}
      value=${role.value} choices=${roles()}
      onValue=${(one) => { role.value = one; }} /><//>
    <${Field} label=${t("sign-in.password")} hint=${t("sign-in.password-hint")}><${TextInput} ...${PASSWORD}
      value=${password.value}
      onValue=${(text) => { password.value = text; }} /><//>
    <${Fault} error=${error.value} />
    <div class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button} type="submit" kind="main-action"
      busy=${busy.value}>${t("add")}<//></div></form><//>`;
}

function Reset({ account, onClose }) {
  const password = useSignal("");
  const { busy, error, submit } = useSending(() => ask(`POST /accounts/${account.id}:password`,
    { body: { password: password.value } }), onClose);
  return html`<${Dialog} title=${t("accounts.reset", { name: account.name })} onClose=${onClose}><form class="form"
    onSubmit=${submit}>
    <p class="muted">${t("accounts.reset-about")}</p>
    <${Field} label=${t("sign-in.password")} hint=${t("sign-in.password-hint")}><${TextInput} ...${PASSWORD} autofocus
      value=${password.value}
      onValue=${(text) => { password.value = text; }} /><//>
    <${Fault} error=${error.value} />
    <div class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button} type="submit" kind="main-action"
      busy=${busy.value}>${t("save")}<//></div></form><//>`;
}
