// QR codes of short texts: bytes, the least correction (L), versions 1 to 5, and always the same mask. Phones read that.
import { html } from "../kit.js";

/** Bytes of data and of correction by version. */
const SIZES = [[19, 7], [34, 10], [55, 15], [80, 20], [108, 26]];
/** Level L with mask 0, with its correction. */
const FORMAT = 0b111011111000100;
const MARGIN = 4;

const powers = [1];
for (let at = 1; at < 255; at += 1) powers[at] = (powers[at - 1] << 1) ^ (powers[at - 1] & 128 ? 0x11d : 0);
const times = (a, b) => (a && b ? powers[(powers.indexOf(a) + powers.indexOf(b)) % 255] : 0);

/** The remainder that corrects errors (Reed and Solomon). @param {number[]} data @param {number} count */
function correction(data, count) {
  let divisor = [1];
  for (let at = 0; at < count; at += 1) divisor = [...divisor, 0].map((one, place) => one ^ times(divisor[place - 1] ?? 0, powers[at]));
  const rest = [...data, ...new Array(count).fill(0)];
  for (let at = 0; at < data.length; at += 1) {
    const factor = rest[at];
    divisor.forEach((one, place) => { rest[at + place] ^= times(one, factor); });
  }
  return rest.slice(data.length);
}

/** @param {string} text @returns {boolean[][]|null} rows of modules, true for dark; null if the text is too long */
export function qrModules(text) {
  const bytes = [...new TextEncoder().encode(text)], version = SIZES.findIndex(([most]) => bytes.length + 2 <= most) + 1;
  if (!version) return null;
  const [most, count] = SIZES[version - 1], size = 17 + 4 * version;
  // Four bits say that bytes follow, eight how many; four more end them: so everything moves by half a byte.
  const nibbles = [4, bytes.length >> 4, bytes.length & 15, ...bytes.flatMap((one) => [one >> 4, one & 15]), 0];
  const data = Array.from({ length: nibbles.length / 2 }, (_, at) => (nibbles[2 * at] << 4) | nibbles[2 * at + 1]);
  for (let at = 0; data.length < most; at += 1) data.push(at % 2 ? 17 : 236);
  const words = [...data, ...correction(data, count)];
  const rows = Array.from({ length: size }, () => /** @type {(boolean|undefined)[]} */ (new Array(size).fill(undefined)));
  const put = (x, y, dark) => { if (rows[y] && x >= 0 && x < size) rows[y][x] = dark; };
  const square = (x, y, radius, isDark) => {
    for (let dy = -radius; dy <= radius; dy += 1) for (let dx = -radius; dx <= radius; dx += 1)
      put(x + dx, y + dy, isDark(Math.max(Math.abs(dx), Math.abs(dy))));
  };
  for (let at = 8; at < size - 8; at += 1) { put(at, 6, at % 2 === 0); put(6, at, at % 2 === 0); }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]]) square(x, y, 4, (far) => far !== 2 && far !== 4);
  if (version > 1) square(size - 7, size - 7, 2, (far) => far !== 1);
  for (let at = 0; at < 15; at += 1) {
    const dark = ((FORMAT >> at) & 1) === 1;
    put(8, at < 6 ? at : at < 8 ? at + 1 : size - 15 + at, dark);
    put(at < 8 ? size - 1 - at : at < 9 ? 7 : 14 - at, 8, dark);
  }
  put(8, size - 8, true);
  // Pairs of columns, up and down by turns, from the right.
  let bit = 0;
  for (let right = size - 1, up = true; right > 0; right -= right === 8 ? 3 : 2, up = !up)
    for (let step = 0; step < size; step += 1) for (const x of [right, right - 1]) {
      const y = up ? size - 1 - step : step;
      if (rows[y][x] !== undefined) continue;
      const on = bit < words.length * 8 && ((words[bit >> 3] >> (7 - (bit & 7))) & 1) === 1;
      rows[y][x] = on !== ((x + y) % 2 === 0);
      bit += 1;
    }
  return rows.map((row) => row.map(Boolean));
}

/** @param {{text: string, label: string}} props */
export function QrCode({ text, label }) {
  const rows = qrModules(text);
  if (!rows) return null;
  const size = rows.length + 2 * MARGIN;
  const path = rows.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x + MARGIN} ${y + MARGIN}h1v1h-1z` : ""))).join("");
  return html`<svg class="qr" role="img" aria-label=${label} viewBox=${`0 0 ${size} ${size}`}
    shape-rendering="crispEdges"><rect width=${size} height=${size} fill="#fff" /><path d=${path} fill="#000" /></svg>`;
}
