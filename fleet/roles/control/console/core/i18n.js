// Texts in the viewer's language; numbers and times as it writes them, in the viewer's time zone.
import { signal } from "./ui.js";

const KEY = "fleet.language";
export const LANGUAGES = { en: "English", zh: "中文" };

const stored = localStorage.getItem(KEY);
const wished = [stored, ...navigator.languages].map((one) => (one ?? "").slice(0, 2).toLowerCase());
/** @type {import("@preact/signals").Signal<"en"|"zh">} */
export const language = signal(/** @type {any} */ (wished.find((one) => one in LANGUAGES) ?? "en"));
/** The text of each key in English and in Chinese. */
const texts = signal(/** @type {Record<string, [string, string]>} */ ({}));

export const locale = () => (language.value === "zh" ? "zh-CN"
  : navigator.languages.find((one) => one.startsWith("en")) ?? "en");

/** @param {"en"|"zh"} wanted */
export async function speak(wanted, keep = true) {
  if (!knows("menu")) texts.value = await (await fetch("texts.json")).json();
  language.value = wanted;
  document.documentElement.lang = wanted === "zh" ? "zh-CN" : "en";
  if (keep) localStorage.setItem(KEY, wanted);
}

/**
 * Returns the text of a key; `{name}` is replaced by a value, and `[turn|turns]` by what fits the value `count`.
 * @param {string} key
 * @param {Record<string, any>} [values]
 */
export function t(key, values) {
  const text = texts.value[key]?.[language.value === "zh" ? 1 : 0] ?? lacking(key);
  if (!values) return text;
  const counted = text.replace(/\[([^|\]]*)\|([^\]]*)\]/g, (_, one, more) => (String(values.count) === "1" ? one
    : more));
  return counted.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/** A text that nobody wrote is a fault of the console. @param {string} key */
function lacking(key) {
  console.warn(`no text for ${key}`);
  return key;
}

const knows = (key) => key in texts.value;

/** The text of a key that may have none: a newer server names more. @param {string} key @param {string} otherwise */
export const textOr = (key, otherwise) => (knows(key) ? t(key) : otherwise);

const made = new Map();
const maker = (kind, options) => {
  const name = kind.name + locale() + JSON.stringify(options);
  if (!made.has(name)) made.set(name, new kind(locale(), options));
  return made.get(name);
};

export const number = (value, options = {}) => maker(Intl.NumberFormat, options).format(value);
export const short = (value) => number(value, { notation: "compact", maximumFractionDigits: 1 });
export const percent = (share, digits = 0) => number(share, { style: "percent", maximumFractionDigits: digits });
export const list = (values) => maker(Intl.ListFormat, { type: "conjunction" }).format(values);
export const day = (value) => maker(Intl.DateTimeFormat, { month: "short", day: "numeric" }).format(new Date(value));
export const clock = (value) =>
  maker(Intl.DateTimeFormat, { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(new Date(value));
export const moment = (value) => maker(Intl.DateTimeFormat, { dateStyle: "medium",
  timeStyle: "short" }).format(new Date(value));
export const exact = (value) => maker(Intl.DateTimeFormat, { dateStyle: "full",
  timeStyle: "long" }).format(new Date(value));

/** What shows how long ago something was reads it, so that it is drawn again while the page is seen. */
const now = signal(Date.now());
const tick = () => { if (!document.hidden) now.value = Date.now(); };
setInterval(tick, 15_000);
document.addEventListener("visibilitychange", tick);

const STEPS = /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([
  ["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]]);
export function ago(value) {
  now.value;
  const seconds = (new Date(value).getTime() - Date.now()) / 1000;
  const [unit, size] = STEPS.find(([, one]) => Math.abs(seconds) >= one) ?? ["second", 1];
  if (unit === "day" && Math.abs(seconds) > 14 * 86_400) return day(value);
  return maker(Intl.RelativeTimeFormat, { numeric: "auto", style: "short" }).format(Math.round(seconds / size), unit);
}

/** @param {number} milliseconds */
export function span(milliseconds) {
  const unit = (value, name, digits = 0) =>
    number(value, { style: "unit", unit: name, unitDisplay: "narrow", maximumFractionDigits: digits });
  if (milliseconds < 1_000) return unit(Math.round(milliseconds), "millisecond");
  if (milliseconds < 60_000) return unit(milliseconds / 1_000, "second", 2);
  if (milliseconds < 3_600_000) return unit(milliseconds / 60_000, "minute", 1);
  if (milliseconds < 86_400_000 * 2) return unit(milliseconds / 3_600_000, "hour", 1);
  return unit(milliseconds / 86_400_000, "day", 1);
}
