// Who is signed in. Everything about signing in is in this file: another way to do it changes nothing else.
import { batch, signal } from "./ui.js";

const TOKEN = "fleet.token";
const ACCOUNT = "fleet.account";
const ATTEMPTS = 10;
const PAUSE = 1_000;
/** @typedef {{kind: string, name: string, tenant: string, scopes: string[], expires: string|null}} Me */

/** Null while nobody is signed in; undefined until that is known. */
export const me = signal(/** @type {Me|null|undefined} */ (undefined));
/** Whether somebody was signed in until the server refused it. */
export const expired = signal(false);
/** Counts sign-ins and -outs: what belongs to one of them ends with it. */
export const era = signal(0);

/** A tab keeps its token; the cookie of an account belongs to the whole browser, and no script can read it. */
let token = sessionStorage.getItem(TOKEN) ?? "";

/** @param {Record<string, string>} headers */
export const authorized = (headers) => (token ? { ...headers, Authorization: `Bearer ${token}` } : headers);

/** @param {...string} scopes */
export const may = (...scopes) => scopes.every((scope) => me.value?.scopes.includes(scope));

async function ask() {
  const answer = await fetch("../v1/me", { headers: authorized({}) });
  if (answer.status === 401) return null;
  if (!answer.ok) throw new Error(String(answer.status));
  return /** @type {Promise<Me>} */ (answer.json());
}

/** @param {Me} found */
function enter(found) {
  expired.value = false;
  begin(found);
}

/**
 * Who is signed in and the era change together: whoever sees one of them sees both.
 * @param {Me|null} found
 */
const begin = (found) => batch(() => {
  me.value = found;
  era.value += 1;
});

/** Ask whether what this browser has is still good; a server that cannot say so now is asked again. */
export async function restore() {
  // Without anything there is nothing to ask.
  for (let left = token || localStorage.getItem(ACCOUNT) ? ATTEMPTS : 0; left; left -= 1) {
    const found = await ask().catch(() => undefined);
    if (found !== undefined) return begin(found);
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
  begin(null);
}

/**
 * @param {string} given
 * @returns {Promise<boolean>} whether the token is good
 */
export async function signInWithToken(given) {
  const before = token;
  token = given.trim();
  const found = await ask();
  if (!found) {
    token = before;
    return false;
  }
  sessionStorage.setItem(TOKEN, token);
  enter(found);
  return true;
}

/** @typedef {{open: boolean, owned: boolean, accounts: boolean}} Ownership  see `GET /v1/accounts:first` */
/** @returns {Promise<Ownership>} whether somebody owns this server, or a code makes the first owner */
export const ownership = async () => {
  const answer = await fetch("../v1/accounts:first");
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
};

/**
 * Sign in with an account; with a code, make it the first owner.
 * @param {{name: string, password: string, tenant?: string, code?: string}} given
 * @returns {Promise<string>} why it was refused; empty if it was not
 */
export async function signIn({ code, ...given }) {
  token = "";
  sessionStorage.removeItem(TOKEN);
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify(code === undefined ? given : { name: given.name, password: given.password,
    code: code.trim() });
  const answer = await fetch(code === undefined ? "../v1/session" : "../v1/accounts:first", { method: "POST", headers,
    body });
  if (!answer.ok) return (await answer.json().catch(() => ({}))).code ?? "failed";
  localStorage.setItem(ACCOUNT, "1");
  const found = await ask();
  if (found) enter(found);
  return found ? "" : "failed";
}

function leave() {
  token = "";
  sessionStorage.removeItem(TOKEN);
  localStorage.removeItem(ACCOUNT);
  begin(null);
}

export async function signOut() {
  if (me.value?.kind === "account") await fetch("../v1/session", { method: "DELETE" }).catch(() => undefined);
  leave();
}

/**
 * To be called before a request.
 * @returns {() => void} ends the sign-in, as the server does not know it any more; not one that began after the request
 */
export function refusing() {
  const asked = era.value;
  return () => {
    if (!me.value || asked !== era.value) return;
    expired.value = true;
    leave();
  };
}
