// Admits a device by the code that it shows, or registers one before it is seen.
import { html, useSignal } from "../core/ui.js";
import { ask } from "../core/api.js";
import { t } from "../core/i18n.js";
import { go } from "../core/router.js";
import { Button, Choices, Fault } from "./basics.js";
import { Dialog, say } from "./feedback.js";
import { Field, TextInput } from "./form.js";

export function AddDevice({ onClose }) {
  const way = useSignal("code"), code = useSignal(""), mac = useSignal(""), name = useSignal("");
  const busy = useSignal(false), error = useSignal(/** @type {any} */ (null));
  const submit = async (event) => {
    event.preventDefault();
    busy.value = true;
    try {
      const found = way.value === "code" ? await ask("POST /devices:bind", { body: { code: code.value } })
        : await ask("POST /devices", { body: { mac: mac.value.trim(), name: name.value.trim() } });
      say(t("devices.added", { mac: found.mac }));
      onClose();
      go(["devices", found.mac]);
    } catch (fault) {
      error.value = fault;
    }
    busy.value = false;
  };
  return html`<${Dialog} title=${t("devices.add")} onClose=${onClose}><form class="form" onSubmit=${submit}>
    <div><${Choices} label=${t("devices.add")} value=${way.value}
      onChoice=${(one) => { way.value = one; error.value = null; }} choices=${[["code", t("devices.by-code")], ["mac",
      t("devices.by-mac")]]} /></div>
    ${way.value === "code" ? html`<p class="muted">${t("devices.code-about")}</p>
      <${Field} key="code" label=${t("devices.code")}><${TextInput} value=${code.value} inputmode="numeric"
        autocomplete="one-time-code" class="mono" placeholder="123 456" autofocus required
        onValue=${(text) => { code.value = text; }} /><//>`
    : html`<p class="muted">${t("devices.mac-about")}</p><${Field} key="mac" label="MAC"><${TextInput}
      value=${mac.value} class="mono" placeholder="02:00:00:00:00:01" required
      onValue=${(text) => { mac.value = text; }} /><//>
      <${Field} key="name" label=${t("query.name")}><${TextInput} value=${name.value} maxlength="100"
        onValue=${(text) => { name.value = text; }} /><//>`}
    <${Fault} error=${error.value} /><div class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button}
      type="submit" kind="main-action" busy=${busy.value}>${t("add")}<//></div></form><//>`;
}
