// Requests to the public API. There is no other way in which the console learns or changes anything.
import { authorized, refusing } from "./session.js";
import { t, textOr } from "./i18n.js";

/** An answer of the API that says no. */
export class Problem extends Error {
  /** @param {number} status @param {any} body */
  constructor(status, body) {
    super(body.detail ?? String(status));
    this.status = status;
    this.code = body.code ?? "failed";
    this.detail = body.detail ?? "";
    this.errors = body.errors ?? [];
    this.request = body.request_id ?? "";
  }

  /** What happened, in the viewer's language if it has words for it. */
  get words() {
    return textOr(`problem.${this.code}`, this.detail || t("problem.failed"));
  }
}

/** @param {Record<string, any>|undefined} query */
export function search(query) {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null
    && value !== "");
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}

/** @param {string} text */
export const part = (text) => encodeURIComponent(text);

/**
 * @param {string} verb such as `GET /devices`
 * @param {{query?: object, body?: any, headers?: Record<string, string>, signal?: AbortSignal, version?: number}} [more]
 * @returns {Promise<Response>}
 */
export async function send(verb, more = {}) {
  const [method, path] = verb.split(" "), refuse = refusing();
  const headers = authorized({ ...more.headers });
  if (more.version !== undefined) headers["If-Match"] = `"${more.version}"`;
  if (method !== "GET") {
    headers["Idempotency-Key"] = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
    if (more.body !== undefined) headers["Content-Type"] = "application/json";
  }
  const body = more.body === undefined ? undefined : JSON.stringify(more.body);
  let answer;
  try {
    answer = await fetch(`../v1${path}${search(more.query)}`, { method, headers, body, signal: more.signal });
  } catch (error) {
    if (more.signal?.aborted) throw error;
    throw new Problem(0, { code: "unreachable" });
  }
  if (answer.ok) return answer;
  if (answer.status === 401) refuse();
  throw new Problem(answer.status, await answer.json().catch(() => ({})));
}

/** @param {string} verb @param {Parameters<typeof send>[1]} [more] @returns {Promise<any>} */
export async function ask(verb, more) {
  const answer = await send(verb, more);
  return answer.status === 204 ? null : answer.json();
}

/** @param {string} path @param {object} [query] @param {AbortSignal} [signal] */
export const get = (path, query, signal) => ask(`GET ${path}`, { query, signal });

/**
 * Send a file. There is no other way by which a page learns how much of it was sent.
 * @param {string} path @param {object} query @param {File} file
 * @param {(share: number) => void} told @param {AbortSignal} signal
 * @returns {Promise<any>}
 */
export const upload = (path, query, file, told, signal) => new Promise((resolve, reject) => {
  const request = new XMLHttpRequest(), refuse = refusing(), fail = (status, body) => reject(new Problem(status, body));
  request.open("POST", `../v1${path}${search(query)}`);
  for (const [name, value] of Object.entries(authorized({ "Content-Type": "application/octet-stream" })))
    request.setRequestHeader(name, value);
  request.responseType = "json";
  request.upload.onprogress = ({ loaded, total }) => told(loaded / (total || 1));
  request.onload = () => {
    if (request.status < 300) return resolve(request.response);
    if (request.status === 401) refuse();
    fail(request.status, request.response ?? {});
  };
  request.onerror = () => fail(0, { code: "unreachable" });
  request.onabort = () => fail(0, { code: "cancelled" });
  signal.addEventListener("abort", () => request.abort());
  request.send(file);
});

/** Let the browser save what a route gives. @param {string} path @param {string} name @param {object} [query] */
export async function save(path, name, query) {
  const blob = await (await send(`GET ${path}`, { query })).blob();
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
