// A list of any length in windows: what is near the view is kept, and for the rest only the cursors.
import { get, signal } from "../kit.js";

/** Rows of the first page, so that it is soon there, and of the others. */
const FIRST = 100;
const PAGE = 250;
/** Rows that are read before they are shown, at least and at most: the faster one scrolls, the more. */
const LEAST_AHEAD = 1_000;
const MOST_AHEAD = 4_000;
/** Seconds that these rows last. */
const LASTING = 1.5;
/** Pages whose rows are kept. */
const KEPT = 40;
/** Pages that are read again at the same time. */
const AT_ONCE = 3;

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
    this.seen = 0;
    this.down = true;
    this.ahead = LEAST_AHEAD;
  }

  /** @param {number} index */
  row(index) {
    const page = this.pages[this.#place(index)];
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
    const moved = first - this.view[0], seen = performance.now();
    if (moved) {
      const speed = Math.abs(moved) / Math.max(0.001, (seen - this.seen) / 1_000);
      this.ahead = Math.min(MOST_AHEAD, Math.max(LEAST_AHEAD, this.ahead * 0.9, speed * LASTING));
      this.down = moved > 0;
      this.seen = seen;
    }
    this.view = /** @type {[number, number]} */ ([first, last]);
    this.#fill();
    if (!this.done && !this.loading && !this.error.peek() && this.known < last + this.ahead) void this.#on();
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
        const page = await this.#read(cursor, this.known ? PAGE : FIRST);
        if (page.items.length) this.pages.push({ start: this.known, length: page.items.length, cursor,
          items: page.items });
        this.known += page.items.length;
        this.following = page.next ?? "";
        this.done = !page.next;
        this.#forget();
        this.version.value += 1;
      } while (!this.done && this.known < this.view[1] + this.ahead);
    } catch (error) {
      if (!this.ending.signal.aborted) this.error.value = error;
    }
    this.loading = false;
  }

  /** Read forgotten pages again: first those in view, then the next ones in the direction of the scroll. */
  #fill() {
    while (this.reading.size < AT_ONCE && !this.error.peek()) {
      const page = this.#missing();
      if (!page) return;
      void this.#again(page);
    }
  }

  /** @returns {Window|undefined} */
  #missing() {
    const [first, last] = this.view, step = this.down ? 1 : -1;
    const from = this.down ? first : Math.min(last, this.known) - 1;
    for (let place = this.#place(from); place in this.pages; place += step) {
      const page = this.pages[place];
      if (page.start > last + this.ahead || page.start + page.length < first - this.ahead) return undefined;
      if (!page.items && !this.reading.has(page)) return page;
    }
    return undefined;
  }

  /** @param {Window} page */
  async #again(page) {
    this.reading.add(page);
    try {
      const found = await this.#read(page.cursor, page.length);
      // Rows may have come or gone since: those that were counted stay, so that nothing moves under the viewer.
      page.items = found.items.slice(0, page.length);
      this.#forget();
      this.version.value += 1;
    } catch (error) {
      if (!this.ending.signal.aborted) this.error.value = error;
    }
    this.reading.delete(page);
    this.#fill();
  }

  /** @param {string} cursor @param {number} limit */
  #read(cursor, limit) { return get(this.path, { ...this.query, limit, cursor }, this.ending.signal); }

  #forget() {
    const kept = this.pages.filter((page) => page.items);
    if (kept.length <= KEPT) return;
    const middle = (this.view[0] + this.view[1]) / 2;
    const far = (page) => Math.abs(page.start + page.length / 2 - middle);
    kept.sort((a, b) => far(b) - far(a)).slice(0, kept.length - KEPT).forEach((page) => { page.items = null; });
  }

  /** The place of the page with a row; -1 if it is not known. @param {number} index */
  #place(index) {
    let low = 0, high = this.pages.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1, page = this.pages[middle];
      if (index < page.start) high = middle - 1;
      else if (index >= page.start + page.length) low = middle + 1;
      else return middle;
    }
    return -1;
  }
}
