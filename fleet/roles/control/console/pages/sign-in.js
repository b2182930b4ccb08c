// Signing in: with an account, with a token, or for the first time with the code that the server shows.
import { html, useEffect, useSignal } from "../core/ui.js";
import { knows, t } from "../core/i18n.js";
import { expired, isNew, signIn, signInWithToken } from "../core/session.js";
import { Appearance } from "../parts/appearance.js";
import { Button, Choices, Fault, Note } from "../parts/basics.js";
import { Field, TextInput } from "../parts/form.js";

const WAYS = ["account", "token"];

export function SignIn() {
  const way = useSignal("account"), fresh = useSignal(false), busy = useSignal(false), error = useSignal("");
  const values = useSignal({ name: "", password: "", tenant: "default", code: "", token: "" });
  useEffect(() => { isNew().then((open) => { fresh.value = open; }, () => undefined); }, []);
  const field = (name, more) => html`<${Field} key=${name} label=${t(`sign-in.${name}`)} hint=${more.hint}>
    <${TextInput} required ...${more} value=${values.value[name]}
      onValue=${(text) => { values.value = { ...values.value, [name]: text }; }} /><//>`;
  const submit = async (event) => {
    event.preventDefault();
    const { name, password, tenant, code, token } = values.value;
    busy.value = true;
    error.value = "";
    try {
      const refusal = fresh.value ? await signIn({ name, password, code })
        : way.value === "account" ? await signIn({ name, password, tenant })
        : (await signInWithToken(token)) ? "" : "wrong-token";
      if (refusal) error.value = t(knows(`problem.${refusal}`) ? `problem.${refusal}` : "problem.failed");
    } catch {
      error.value = t("problem.unreachable");
    }
    busy.value = false;
  };
  return html`<main class="entry"><div><div class="card"><div class="brand"><img src="icon.svg" alt="" />fleet</div>
    <form class="form" onSubmit=${submit}><h1>${t(fresh.value ? "sign-in.first" : "sign-in.title")}</h1>
      ${expired.value && html`<${Note} kind="warn">${t("sign-in.expired")}<//>`}
      ${fresh.value ? html`<p class="muted">${t("sign-in.first-about")}</p>
        ${field("code", { hint: t("sign-in.code-hint"), class: "mono", autocomplete: "one-time-code", autofocus: true,
          placeholder: "ABCD-EFGH-JKLM-NPQR" })}
        ${field("name", { hint: t("form.name-hint"), autocomplete: "username", pattern: "[A-Za-z0-9._\\-]{1,63}" })}
        ${field("password", { hint: t("sign-in.password-hint"), type: "password", autocomplete: "new-password",
          minlength: 12 })}`
      : html`<${Choices} label=${t("sign-in.way")} value=${way.value} choices=${WAYS.map((one) => [one,
        t(`sign-in.${one}`)])}
          onChoice=${(one) => { way.value = one; error.value = ""; }} />
        ${way.value === "token"
          ? field("token", { hint: t("sign-in.token-hint"), type: "password", class: "mono", autofocus: true,
            autocomplete: "off", placeholder: "flt_…" })
          : html`${field("name", { autocomplete: "username", autofocus: true })}
            ${field("password", { type: "password", autocomplete: "current-password" })}
            <details><summary class="muted small">${t("sign-in.more")}</summary>${field("tenant",
              { autocomplete: "organization" })}</details>`}`}
      ${error.value && html`<${Fault} error=${error.value} />`}
      <${Button} type="submit" kind="main-action" busy=${busy.value}>${t(fresh.value ? "sign-in.begin"
        : "sign-in.go")}<//></form></div>
    <div class="row choices-line"><${Appearance} /></div></div></main>`;
}
