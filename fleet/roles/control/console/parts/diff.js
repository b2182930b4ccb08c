// What differs between two texts, line by line.
import { html, t } from "../kit.js";

const LONGEST = 1_500;

/** @param {string} before @param {string} after @returns {[""|"gone"|"added", string][]} */
export function diff(before, after) {
  const a = before.split("\n").slice(0, LONGEST), b = after.split("\n").slice(0, LONGEST);
  const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1) best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1
      : Math.max(best[i + 1][j], best[i][j + 1]);
  const found = /** @type {[""|"gone"|"added", string][]} */ ([]);
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { found.push(["", a[i]]); i += 1; j += 1; }
    else if (j >= b.length || (i < a.length && best[i + 1][j] >= best[i][j + 1])) { found.push(["gone",
      a[i]]); i += 1; }
    else { found.push(["added", b[j]]); j += 1; }
  }
  return found;
}

/** A document as lines: the prompt as it is written, the rest as fields. @param {any} document */
export function asLines(document) {
  const lines = [];
  const walk = (value, place) => {
    if (value === null || value === undefined) return;
    if (typeof value === "object") for (const [name, inner] of Object.entries(value)) walk(inner, place
      ? `${place}.${name}` : name);
    else if (typeof value === "string" && value.includes("\n")) lines.push(`${place}:`,
      ...value.split("\n").map((line) => `  ${line}`));
    else lines.push(`${place}: ${value}`);
  };
  walk(document, "");
  return lines.join("\n");
}

export function Diff({ before, after, label }) {
  const lines = diff(asLines(before), asLines(after));
  if (lines.every(([kind]) => !kind)) return html`<p class="muted">${t("agents.no-differences")}</p>`;
  return html`<div class="diff" tabindex="0" role="region" aria-label=${label}>${lines.map(([kind, line]) => html`<div
    class=${kind}>${kind && html`<span class="hidden-text">${t(`diff.${kind}`)} </span>`}${line || " "}</div>`)}</div>`;
}
