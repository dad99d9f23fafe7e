// The state of the page, and its form in a link: JSON in base64url after #s=. Links come from strangers, so every field
// is checked when one is read.

import { settle } from "./dom.js";

const TEXTS = ["kind", "option", "source", "typed", "prompt", "view", "weighing"];
const NUMBERS = { draws: [8, 512], most: [1, 256], seed: [0, 4294967295] };
const LONGEST = 200000;

export const state = {
  kind: "schema", option: "default", source: "", typed: "", prompt: "", view: "type", weighing: "counts",
  draws: 128, most: 32, seed: 0, tokens: [], samplers: ["masked", "awrs", "exact", "smc"],
};

const listeners = [];
export const whenLoaded = (listener) => listeners.push(listener);

/** Change fields of the state. The address of the page follows after a moment. */
export function change(fields) {
  Object.assign(state, fields);
  writeAddress();
}

/** Return the source as the server wants it. */
export function sourceObject() {
  return state.option ? { kind: state.kind, text: state.source, option: state.option } : { kind: state.kind, text: state.source };
}

export function makeLink() {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  const data = btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  return `${location.origin}${location.pathname}#s=${data}`;
}

const writeAddress = settle(400, () => history.replaceState(null, "", makeLink()));

/** Read the state from the address. Returns whether there is one. */
export function readLink() {
  const data = location.hash.startsWith("#s=") ? location.hash.slice(3) : "";
  if (!data || data.length > LONGEST) return false;
  try {
    const binary = atob(data.replace(/-/g, "+").replace(/_/g, "/"));
    const found = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(binary, (c) => c.charCodeAt(0))));
    Object.assign(state, checkState(found));
    return true;
  } catch {
    return false;
  }
}

function checkState(found) {
  const kept = {};
  for (const name of TEXTS) if (typeof found[name] === "string") kept[name] = found[name];
  for (const [name, [low, high]] of Object.entries(NUMBERS)) {
    if (Number.isInteger(found[name]) && found[name] >= low && found[name] <= high) kept[name] = found[name];
  }
  if (!["type", "step", "sample"].includes(kept.view)) delete kept.view;
  if (!["counts", "shares"].includes(kept.weighing)) delete kept.weighing;
  const isToken = (one) => Number.isInteger(one) && one >= 0;
  if (Array.isArray(found.tokens) && found.tokens.length < 1000 && found.tokens.every(isToken)) kept.tokens = found.tokens;
  if (Array.isArray(found.samplers) && found.samplers.every((one) => typeof one === "string")) kept.samplers = found.samplers.slice(0, 12);
  return kept;
}

/** Tell all views that the state is another one. */
export function announce() {
  for (const listener of listeners) listener();
}
