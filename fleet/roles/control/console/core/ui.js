// What every part is made of: elements, signals and hooks from one place.
import { h, render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { batch, effect, signal, useSignal } from "@preact/signals";
import htm from "htm";

export const html = htm.bind(h);
export { batch, effect, render, signal, useEffect, useLayoutEffect, useMemo, useRef, useSignal };

/** @param {...(string|false|null|undefined)} names */
export const classes = (...names) => names.filter(Boolean).join(" ");

/** A signal without a value. @returns {import("@preact/signals").Signal<any>} */
export const useNone = () => useSignal(null);

/** What a button does that changes a signal. @param {import("@preact/signals").Signal<any>} of @param {any} value */
export const put = (of, value) => () => { of.value = value; };
