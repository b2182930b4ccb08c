// A list of any length in windows: what is near the view is kept, and for the rest only the cursors.
import { signal } from "../core/ui.js";
import { get } from "../core/api.js";

const PAGE = 250;
const AHEAD = 1_500;
/** Pages whose rows are kept. */
const KEPT = 24;

/** @typedef {{start: number, length: number, cursor: string, items: any[]|null}} Window */

export class Windows {
  /** @param {string} path @param {Record<string, any>} query */
  constructor(path, query) {
    this.path = path;
    this.query = query;
    /** Counts changes of what is known. */
    this.version = signal(0);
    this.error = signal(/** @type {any} */ (null));
    /** Rows that are known to exist, from the first one on. */
    this.known = 0;
    this.done = false;
    /** @type {Window[]} */
    this.pages = [];
    this.following = "";
    this.ending = new AbortController();
    this.loading = false;
    this.reading = new Set();
    this.view = /** @type {[number, number]} */ ([0, 0]);
  }

  /** @param {number} index */
  row(index) {
    const page = this.#page(index);
    return page?.items?.[index - page.start];
  }

  /** Change a row that is kept. @param {(row: any) => any} change gives the row itself if nothing changed */
  patch(change) {
    let changed = false;
    for (const page of this.pages)
      page.items?.forEach((row, place, items) => {
        const after = change(row);
        if (after !== row) { items[place] = after; changed = true; }
      });
    if (changed) this.version.value += 1;
  }

  /** Read what is shown from one row to another, and what will be shown next. @param {number} first @param {number} last */
  show(first, last) {
    this.view = /** @type {[number, number]} */ ([first, last]);
    for (let index = Math.max(0, first - PAGE); index < Math.min(this.known, last + PAGE);) {
      const page = this.#page(index);
      if (!page) break;
      if (!page.items) this.#again(page);
      index = page.start + page.length;
    }
    if (!this.done && !this.loading && !this.error.peek() && this.known < last + AHEAD) this.#on();
  }

  /** Try again after an error. */
  retry() {
    this.error.value = null;
    this.show(...this.view);
  }

  close() { this.ending.abort(); }

  async #on() {
    this.loading = true;
    try {
      do {
        const cursor = this.following;
        const page = await this.#read(cursor);
        if (page.items.length) this.pages.push({ start: this.known, length: page.items.length, cursor,
          items: page.items });
        this.known += page.items.length;
        this.following = page.next ?? "";
        this.done = !page.next;
        this.#forget();
        this.version.value += 1;
      } while (!this.done && this.known < this.view[1] + AHEAD);
    } catch (error) {
      if (!this.ending.signal.aborted) this.error.value = error;
    }
    this.loading = false;
  }

  /** @param {Window} page */
  async #again(page) {
    if (this.reading.has(page)) return;
    this.reading.add(page);
    try {
      const found = await this.#read(page.cursor);
      // Rows may have come or gone since: those that were counted stay, so that nothing moves under the viewer.
      page.items = found.items.slice(0, page.length);
      this.#forget();
      this.version.value += 1;
    } catch (error) {
      if (!this.ending.signal.aborted) this.error.value = error;
    }
    this.reading.delete(page);
  }

  /** @param {string} cursor */
  #read(cursor) { return get(this.path, { ...this.query, limit: PAGE, cursor }, this.ending.signal); }

  #forget() {
    const kept = this.pages.filter((page) => page.items);
    if (kept.length <= KEPT) return;
    const middle = (this.view[0] + this.view[1]) / 2;
    const far = (page) => Math.abs(page.start + page.length / 2 - middle);
    kept.sort((a, b) => far(b) - far(a)).slice(0, kept.length - KEPT).forEach((page) => { page.items = null; });
  }

  /** @param {number} index @returns {Window|undefined} */
  #page(index) {
    let low = 0, high = this.pages.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1, page = this.pages[middle];
      if (index < page.start) high = middle - 1;
      else if (index >= page.start + page.length) low = middle + 1;
      else return page;
    }
    return undefined;
  }
}
