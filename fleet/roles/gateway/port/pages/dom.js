"use strict";
const find = (id) => document.getElementById(id);

/** Sets a property to what `phrase` returns; label() sets it again when the language changes. */
function write(element, property, phrase) {
  element.phrases = { ...element.phrases, [property]: phrase };
  element.dataset.phrases = "";
  element[property] = phrase();
}

/** Makes an element. Data only ever becomes text or a property, never markup; a function goes to write(). */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") write(element, name, value);
    else if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Returns JSON as a <pre> with coloured keys and values. */
function jsonBlock(text) {
  const block = make("pre", { className: "json" });
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    block.append(text.slice(end, found.index));
    const [whole, string, colon, word] = found;
    const kind = colon ? "key" : string ? "string" : word ? "word" : "number";
    block.append(make("span", { className: `json-${kind}`, textContent: colon ? string : whole }), colon || "");
    end = found.index + whole.length;
  }
  block.append(text.slice(end));
  return block;
}

const pretty = (value) => JSON.stringify(value, null, 2);
const clock = (date, decimals = 3) => date.toTimeString().slice(0, 8) + (decimals ? `.${String(date.getMilliseconds()).padStart(3, "0")}` : "");

function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 10) return `${Number(ms.toFixed(1))} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

function announce(text) {
  find("announcer").textContent = text;
}

/** Copies text; over plain HTTP in a local network browsers offer only the old way. */
async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = make("textarea", { value: text, readOnly: true, className: "hidden" });
    document.body.append(field);
    field.select();
    done = document.execCommand("copy");
    field.remove();
    button.focus();
  }
  announce(say(done ? "copied" : "notCopied"));
  button.dataset.copied = done ? "✓" : "✗";
  setTimeout(() => delete button.dataset.copied, 1500);
}

/** Whether a scrolled list shows its end; then it should follow what is added. */
const atEnd = (element) => element.scrollHeight - element.scrollTop - element.clientHeight < 60;

function addFollowing(list, element) {
  const follow = atEnd(list);
  list.append(element);
  if (follow) list.scrollTop = list.scrollHeight;
}
