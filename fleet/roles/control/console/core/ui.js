// What every part is made of: elements, signals and hooks from one place.
import { Fragment, h, render } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { batch, computed, effect, signal, useSignal, useSignalEffect } from "@preact/signals";
import htm from "htm";

export const html = htm.bind(h);
export { Fragment, batch, computed, effect, h, render, signal, useCallback, useEffect, useLayoutEffect, useMemo };
export { useRef, useSignal, useSignalEffect, useState };

/** @param {...(string|false|null|undefined)} names */
export const classes = (...names) => names.filter(Boolean).join(" ");
