// Light, dark, or as the system has it.
import { signal } from "./ui.js";

const KEY = "fleet.theme";
/** @type {import("@preact/signals").Signal<"auto"|"light"|"dark">} */
export const theme = signal(/** @type {any} */ (localStorage.getItem(KEY) ?? "auto"));

const show = () => { document.documentElement.dataset.theme = theme.value; };
show();

/** @param {"auto"|"light"|"dark"} wanted */
export function paint(wanted) {
  theme.value = wanted;
  localStorage.setItem(KEY, wanted);
  show();
}
