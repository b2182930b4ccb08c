// Signing in: with an account, with a token, or for the first time with the code that the server shows.
import { Button, Choices, expired, Fault, Field, go, html, Note, ownership, signIn, signInWithToken, t,
  TextInput, textOr, useEffect, useRef, useSignal } from "../kit.js";
import { Appearance } from "../parts/appearance.js";

/** @param {import("../core/session.js").Ownership} of @returns {string} what is to do while there is no account */
function advice({ open, owned, accounts }) {
  if (open || accounts) return "";
  return owned ? "sign-in.no-account" : "sign-in.code-void";
}

export function SignIn() {
  const state = useSignal({ open: false, owned: true, accounts: true });
  const way = useSignal(""), busy = useSignal(false), error = useSignal("");
  const values = useSignal({ name: "", password: "", tenant: "default", code: "", token: "" });
  const chosen = useRef(false);
  const look = () => ownership().then((found) => {
    state.value = found;
    if (!chosen.current) way.value = found.open ? "first" : found.accounts ? "account" : "token";
  });
  // Until then there is no field: the first one gets the focus when it comes.
  useEffect(() => { look().catch(() => { error.value = t("problem.unreachable"); way.value ||= "account"; }); }, []);
  const ways = state.value.open ? ["first", "token"] : ["account", "token"], fresh = way.value === "first";
  const field = (name, more) => html`<${Field} key=${name} label=${t(`sign-in.${name}`)} hint=${more.hint}>
    <${TextInput} required ...${more} value=${values.value[name]}
      onValue=${(text) => { values.value = { ...values.value, [name]: text }; }} /><//>`;
  const submit = async (event) => {
    event.preventDefault();
    if (!way.value) return;
    const { name, password, tenant, code, token } = values.value;
    busy.value = true;
    error.value = "";
    try {
      const refusal = fresh ? await signIn({ name, password, code })
        : way.value === "account" ? await signIn({ name, password, tenant })
        : (await signInWithToken(token)) ? "" : "wrong-token";
      if (refusal) error.value = textOr(`problem.${refusal}`, t("problem.failed"));
      // A code that was tried too often is void.
      if (refusal === "wrong-code") await look();
      if (!refusal && fresh && !location.hash) go(["start"]);
    } catch {
      error.value = t("problem.unreachable");
    }
    busy.value = false;
  };
  return html`<main class="entry"><div><div class="card"><div class="brand"><img src="icon.svg" alt="" />fleet</div>
    <form class="form" onSubmit=${submit}><h1>${t(state.value.open ? "sign-in.first" : "sign-in.title")}</h1>
      ${expired.value && html`<${Note} kind="warn">${t("sign-in.expired")}<//>`}
      ${advice(state.value) && html`<${Note} kind="warn">${t(advice(state.value))}<//>`}
      <${Choices} label=${t("sign-in.way")} value=${way.value} choices=${ways.map((one) => [one, t(`sign-in.way.${one}`)])}
        onValue=${(one) => { chosen.current = true; way.value = one; error.value = ""; }} />
      ${fresh ? html`<p class="muted">${t("sign-in.first-about")}</p>
        ${field("code", { hint: t("sign-in.code-hint"), class: "mono", autocomplete: "one-time-code", autofocus: true,
          placeholder: "ABCD-EFGH-JKLM-NPQR" })}
        ${field("name", { hint: t("form.name-hint"), autocomplete: "username", pattern: "[A-Za-z0-9._\\-]{1,63}" })}
        ${field("password", { hint: t("sign-in.password-hint"), type: "password", autocomplete: "new-password",
          minlength: 12 })}`
      : html`${way.value === "token"
          ? field("token", { hint: t("sign-in.token-hint"), type: "password", class: "mono", autofocus: true,
            autocomplete: "off", placeholder: "flt_…" })
          : way.value && html`${field("name", { autocomplete: "username", autofocus: true })}
            ${field("password", { type: "password", autocomplete: "current-password" })}
            <details><summary class="muted small">${t("sign-in.more")}</summary>${field("tenant",
              { autocomplete: "organization" })}</details>`}`}
      ${error.value && html`<${Fault} error=${error.value} />`}
      <${Button} type="submit" kind="main-action" busy=${busy.value}>${t(fresh ? "sign-in.begin"
        : "sign-in.title")}<//></form></div>
    <div class="row choices-line"><${Appearance} /></div></div></main>`;
}
