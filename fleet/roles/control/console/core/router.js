// The place in the console is the fragment of the address: `#/devices?filter=online`.
import { signal } from "./ui.js";
import { search } from "./api.js";

function read() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decodeURIComponent),
    query: Object.fromEntries(new URLSearchParams(query)) };
}

/** @type {import("@preact/signals").Signal<{path: string[], query: Record<string, string>}>} */
export const place = signal(read());
addEventListener("hashchange", () => { place.value = read(); });

/** @param {(string|number)[]} path @param {object} [query] */
export const to = (path, query) => `#/${path.map((one) => encodeURIComponent(String(one))).join("/")}${search(query)}`;

/** @param {(string|number)[]} path @param {object} [query] */
export function go(path, query, replace = false) {
  const address = to(path, query);
  if (address === location.hash) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  place.value = read();
}
addEventListener("popstate", () => { place.value = read(); });
