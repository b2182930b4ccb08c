// A table of a list that is read page by page.
import { classes, html } from "../core/ui.js";
import { Card } from "./basics.js";
import { Loaded, More } from "./load.js";

/**
 * @param {{of: any, label: string, columns: {name: string, show: (row: any) => any, right?: boolean, wide?: boolean}[],
 *   row: (row: any) => string|number, empty: any, title?: string, aside?: any}} props  row: the key of a row
 */
export function ListTable({ of, label, columns, row, empty, title, aside }) {
  return html`<${Card} flush title=${title} aside=${aside}><${Loaded} of=${of}>${(items) => items.length === 0
    && !of.next ? empty : html`
    <${Rows} items=${items} label=${label} columns=${columns} row=${row} /><${More} of=${of} />`}<//><//>`;
}

export const Rows = ({ items, label, columns, row }) => html`<div class="table-box" tabindex="0" role="region"
  aria-label=${label}><table class="table">
  <thead><tr>${columns.map((one) => html`<th scope="col" class=${classes(one.right && "right", one.wide
    && "wide-only")}>${one.name || html`<span class="hidden-text">${label}</span>`}</th>`)}</tr></thead>
  <tbody>${items.map((item) => html`<tr key=${row(item)}>${columns.map((one) => html`
    <td class=${classes(one.right && "right number", one.wide
      && "wide-only")}>${one.show(item)}</td>`)}</tr>`)}</tbody></table></div>`;
