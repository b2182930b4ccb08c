// Draws the rows of `Windows` that are in view: at most some dozens are in the document, however many there are.
import { classes, html, useEffect, useLayoutEffect, useRef, useSignal } from "../kit.js";

/** Rows that are drawn above and below the view; fewer as long as each step scrolls them away before they are seen. */
const MORE = 8;
const LEAST_MORE = 1;
/** Rows that one scrolled area holds: browsers do not draw areas of more than some 30 million pixels. */
const AREA = 400_000;
const STEP = 300_000;

/**
 * @param {{windows: import("./windows.js").Windows, total: number, label: string, height: number, begin?: number,
 *   draw: (row: any, index: number) => any, open: (row: any) => void, mark: (row: any, index: number, range: boolean) => void,
 *   marked: (row: any) => boolean, onTop?: (index: number) => void}} props
 *   total: of all rows, as far as known
 */
export function VirtualRows({ windows, total, label, height, begin = 0, draw, open, mark, marked, onTop }) {
  const view = useRef(/** @type {HTMLDivElement|null} */ (null));
  const top = useSignal(0), size = useSignal(600), base = useSignal(0), active = useSignal(begin);
  const kept = useRef(/** @type {{draw: any, lines: Map<number, any>}} */ ({ draw: null, lines: new Map() }));
  const before = useRef(0);
  windows.version.value;
  const rows = windows.known + (windows.done ? 0 : 3);
  const inside = Math.max(0, Math.min(AREA, rows - base.value));
  const begins = base.value + Math.floor(top.value / height);
  const ends = Math.min(rows, base.value + Math.ceil((top.value + size.value) / height));
  const more = Math.abs(begins - before.current) < size.value / height ? MORE : LEAST_MORE;
  before.current = begins;
  const first = Math.max(base.value, begins - more);
  const last = Math.min(rows, ends + more);

  useEffect(() => { windows.show(begins, ends); }, [windows, begins, ends, windows.version.value]);
  useEffect(() => { onTop?.(begins); }, [begins]);
  useLayoutEffect(() => {
    const box = /** @type {HTMLDivElement} */ (view.current);
    const watch = new ResizeObserver(() => { size.value = box.clientHeight; });
    watch.observe(box);
    size.value = box.clientHeight;
    return () => watch.disconnect();
  }, []);
  // Another list begins at its top; a list that one comes back to, where one left it.
  useLayoutEffect(() => { move(Math.min(begin, Math.max(0, windows.known - 1)), true); }, [windows]);

  /** @param {number} index */
  function move(index, toTop = false) {
    const box = /** @type {HTMLDivElement} */ (view.current);
    active.value = Math.max(0, Math.min(index, windows.known - 1));
    if (active.value < base.value || active.value >= base.value + AREA) base.value = Math.max(0,
      Math.floor((active.value - AREA / 2) / STEP) * STEP);
    const at = (active.value - base.value) * height;
    const visible = box.clientHeight;
    if (toTop || at < box.scrollTop) box.scrollTop = at;
    else if (at + height > box.scrollTop + visible) box.scrollTop = at + height - visible;
    top.value = box.scrollTop;
  }
  function scrolled() {
    const box = view.current;
    // The browser tells of a scroll with its next frame: the list may be gone by then.
    if (!box) return;
    const index = base.value + Math.floor(box.scrollTop / height);
    if (index > base.value + AREA - (AREA - STEP) / 2 && rows > base.value + AREA) shift(STEP);
    else if (base.value > 0 && index < base.value + (AREA - STEP) / 4) shift(-STEP);
    top.value = box.scrollTop;
  }
  function shift(by) {
    const box = /** @type {HTMLDivElement} */ (view.current);
    const moved = Math.max(0, base.value + by) - base.value;
    base.value += moved;
    box.scrollTop -= moved * height;
  }
  function key(event) {
    const page = Math.max(1, Math.floor(size.value / height) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves) move(active.value + moves[event.key]);
    else if (event.key === "Enter" && windows.row(active.value)) open(windows.row(active.value));
    else if (event.key === " " && windows.row(active.value)) mark(windows.row(active.value), active.value,
      event.shiftKey);
    else return;
    event.preventDefault();
  }
  // A row that has not changed is not drawn again.
  if (kept.current.draw !== draw) kept.current = { draw, lines: new Map() };
  const drawn = [], lines = new Map();
  for (let index = first; index < last; index += 1) {
    const row = windows.row(index), on = index === active.value, chosen = Boolean(row && marked(row));
    const same = kept.current.lines.get(index);
    const line = same?.row === row && same?.on === on && same?.chosen === chosen ? same : { row, on, chosen,
      drawn: html`<div key=${index} id=${`row-${index}`} role="row" aria-rowindex=${index + 1}
      class=${classes("item cells", on && "active", !row && "blank")}
      aria-selected=${String(chosen)}
      onClick=${(event) => { if (!row) return; active.value = index; if (event.target.closest("[data-mark]")) mark(row, index, event.shiftKey); else open(row); }}>
      ${row ? draw(row, index) : html`<div role="gridcell" class="muted">…</div>`}</div>` };
    lines.set(index, line);
    drawn.push(line.drawn);
  }
  kept.current.lines = lines;
  return html`<div class="view" ref=${view} role="grid" tabindex="0" aria-label=${label} aria-rowcount=${total || -1}
    aria-multiselectable="true"
      aria-activedescendant=${windows.known && active.value >= first && active.value < last ? `row-${active.value}`
        : undefined} onScroll=${scrolled} onKeyDown=${key}>
    <div class="space" role="rowgroup" style=${{ height: `${inside * height}px` }}>
      <div class="rows" role="presentation"
        style=${{ transform: `translateY(${(first - base.value) * height}px)` }}>${drawn}</div></div></div>`;
}
