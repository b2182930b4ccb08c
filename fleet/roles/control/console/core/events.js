// What happens, by one stream for the whole tab. Events come in batches, one for a frame, so that many do not freeze it.
import { effect, signal, useEffect, useRef } from "./ui.js";
import { authorized, era, may, me, refusing } from "./session.js";

/** @typedef {{id: number, at: string, kind: string, device: string|null, data: any}} FleetEvent */
/** @type {import("@preact/signals").Signal<"off"|"joining"|"live"|"lost">} */
export const stream = signal("off");

const MOST_WAITING = 2_000;
const LONGEST_PAUSE = 20_000;
/** @type {Set<(events: FleetEvent[]) => void>} */
const followers = new Set();
/** @type {FleetEvent[]} */
let waiting = [];
let last = "";
let asked = 0;

function give() {
  asked = 0;
  const batch = waiting;
  waiting = [];
  for (const follower of followers) follower(batch);
}

/** The newest events in place of too many, with a gap before them. @param {FleetEvent[]} events */
const bounded = (events) => (events.length > MOST_WAITING ? [{ ...events[0], id: 0, kind: "gap", device: null },
  ...events.slice(-MOST_WAITING / 2)] : events);

/** @param {FleetEvent} event */
function take(event) {
  waiting.push(event);
  waiting = bounded(waiting);
  if (!asked) asked = document.hidden ? setTimeout(give, 1_000) : requestAnimationFrame(give);
}

/**
 * Read frames of text/event-stream until it ends.
 * @param {Response} answer @param {(frame: {id: string, event: string, data: string}) => void} found
 */
export async function frames(answer, found) {
  const reader = /** @type {ReadableStream} */ (answer.body).pipeThrough(new TextDecoderStream()).getReader();
  for (let text = "", piece = await reader.read(); !piece.done; piece = await reader.read()) {
    text += piece.value;
    const parts = text.split("\n\n");
    text = parts.pop() ?? "";
    for (const part of parts) {
      const frame = { id: "", event: "", data: "" };
      for (const line of part.split("\n")) {
        const [name, value] = [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)];
        if (name in frame) frame[name] += value;
      }
      if (frame.event) found(frame);
    }
  }
}

/** @param {AbortSignal} signal */
async function follow(signal) {
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      if (stream.value !== "lost") stream.value = "joining";
      const headers = authorized({ Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) });
      const refuse = refusing();
      const answer = await fetch("../v1/events", { headers, signal, cache: "no-store" });
      if (answer.status === 401) return refuse();
      if (answer.ok) {
        // What happened while the stream was lost is not known when it had no place yet.
        if (stream.value === "lost" && !last) take({ id: 0, at: new Date().toISOString(), kind: "gap", device: null,
          data: {} });
        stream.value = "live";
        failures = 0;
        await frames(answer, (frame) => {
          last = frame.id || last;
          const event = JSON.parse(frame.data);
          take(frame.event === "gap" ? { id: 0, at: "", kind: "gap", device: null, data: event } : event);
        });
        if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 200));
        continue;
      }
    } catch {
      if (signal.aborted) return;
    }
    stream.value = "lost";
    const pause = Math.min(LONGEST_PAUSE, 500 * 2 ** failures) * (0.5 + Math.random());
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Follow events as long as somebody is signed in who may. */
export function begin() {
  let ending = new AbortController();
  effect(() => {
    era.value;
    ending.abort();
    last = "";
    if (!me.peek() || !may("events:read")) {
      stream.value = "off";
      return;
    }
    ending = new AbortController();
    setTimeout(follow, 0, ending.signal);
  });
}

/**
 * Call a function with batches of events of some kinds or families, and with a `gap` after which all is to be read again.
 * @param {string[]} kinds @param {(events: FleetEvent[]) => void} handle
 * @param {number} [pause] milliseconds for which events are collected, for what costs much or reads again
 */
export function useEvents(kinds, handle, pause = 0) {
  const latest = useRef(handle);
  latest.current = handle;
  useEffect(() => {
    const wanted = new Set([...kinds, "gap", "events"]);
    /** @type {FleetEvent[]} */
    let held = [];
    let timer = 0;
    const hand = () => {
      const found = held;
      [held, timer] = [[], 0];
      latest.current(found);
    };
    /** @param {FleetEvent[]} batch */
    const follower = (batch) => {
      const found = batch.filter((one) => wanted.has(one.kind) || wanted.has(one.kind.split(".")[0]));
      if (!found.length) return;
      held = bounded(held.concat(found));
      if (!pause) hand();
      else timer ||= setTimeout(hand, pause);
    };
    followers.add(follower);
    return () => {
      clearTimeout(timer);
      followers.delete(follower);
    };
  }, [kinds.join(), pause]);
}

/** Do something each few seconds while the page is seen. @param {number} seconds @param {() => void} handle */
export function useEvery(seconds, handle) {
  const latest = useRef(handle);
  latest.current = handle;
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) latest.current(); }, seconds * 1000);
    return () => clearInterval(timer);
  }, []);
}
