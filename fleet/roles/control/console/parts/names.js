// Names of devices of which only the MAC is known.
import { signal, useEffect } from "../core/ui.js";
import { get } from "../core/api.js";

const AT_ONCE = 40;
const known = signal(/** @type {Map<string, string>} */ (new Map()));
const asked = new Set();

/** Return the names that are known by now, by MAC; the others are asked for. @param {string[]} macs */
export function useNames(macs) {
  useEffect(() => {
    const missing = macs.filter((mac) => !asked.has(mac));
    for (let at = 0; at < missing.length; at += AT_ONCE) {
      const some = missing.slice(at, at + AT_ONCE);
      some.forEach((mac) => asked.add(mac));
      get("/devices", { filter: some.map((mac) => `mac=${mac}`).join(" OR "), fields: "mac,name",
        limit: AT_ONCE }).then(
        ({ items }) => { known.value = new Map([...known.value, ...items.map((one) => [one.mac, one.name])]); },
        () => some.forEach((mac) => asked.delete(mac)));
    }
  }, [macs.join()]);
  return known.value;
}
