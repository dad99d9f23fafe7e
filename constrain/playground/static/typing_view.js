// The view "Type": a text is checked while it is typed.

import { find, make, settle, show } from "./dom.js";
import { ask } from "./server.js";
import { showSourceError } from "./source_view.js";
import { change, sourceObject, state, whenLoaded } from "./state.js";

let running = null;
let latest = null;
let vocabulary = 0;

export function openTyping(facts) {
  vocabulary = facts.vocabulary;
  const typed = find("typed");
  const later = settle(60, inspect);
  typed.addEventListener("input", () => {
    change({ typed: typed.value });
    fadeMarks();
    later();
  });
  typed.addEventListener("scroll", () => { find("marks").scrollTop = typed.scrollTop; });
  typed.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      insertForced();
    }
  });
  find("insert-forced").addEventListener("click", insertForced);
  find("complete").addEventListener("click", complete);
  find("cut").addEventListener("click", () => latest?.refusal && setTyped(state.typed.slice(0, latest.accepted)));
  find("clear").addEventListener("click", () => setTyped(""));
  whenLoaded(() => { typed.value = state.typed; });
}

/** Ask the server about the text, and show the answer unless another one was asked for meanwhile. */
export async function inspect() {
  running?.abort();
  const mine = running = new AbortController();
  const text = state.typed;
  try {
    const found = await ask("inspect", { source: sourceObject(), text }, mine.signal);
    if (mine.signal.aborted) return;
    showSourceError("", found.warnings);
    latest = found;
    showFound(text, found);
  } catch (error) {
    if (error.name === "AbortError") return;
    const isSource = error.place?.startsWith("/source");
    latest = null;
    showSourceError(isSource ? error.message : "");
    showNothing(isSource ? "The constraint is refused, see its message." : error.message);
  }
}

function setTyped(text) {
  find("typed").value = text;
  change({ typed: text });
  find("typed").focus();
  inspect();
}

const insertForced = () => latest && !latest.refusal && latest.forced_next && setTyped(state.typed + latest.forced_next);

async function complete() {
  const text = latest?.refusal ? state.typed.slice(0, latest.accepted) : state.typed;
  try {
    const { completion } = await ask("complete", { source: sourceObject(), text });
    if (completion === null) showVerdict("", "There is no completion of moderate length.", "");
    else setTyped(text + completion);
  } catch (error) {
    showNothing(error.message);
  }
}

/** Keep the marks of what is still the same text until the server has answered. */
function fadeMarks() {
  const before = latest?.text ?? "";
  if (latest && state.typed.startsWith(before.slice(0, latest.accepted))) paint(state.typed, { ...latest, refusal: null, forced_next: "" });
}

function showFound(text, found) {
  found.text = text;
  paint(text, found);
  show(find("expected"), list(found.expected));
  show(find("position"), ...describePosition(found));
  find("allowed").textContent = `${found.allowed_tokens.toLocaleString("en")} of ${vocabulary.toLocaleString("en")}`;
  find("insert-forced").disabled = Boolean(found.refusal) || !found.forced_next;
  find("cut").disabled = !found.refusal;
  find("complete").disabled = found.is_finished;
  if (found.refusal) {
    const { line, column, found: what } = found.refusal;
    showVerdict("bad", `Refused at line ${line}, column ${column}.`, `Found ${what}.`);
  } else if (found.is_finished) showVerdict("good", "Complete.", "Nothing may follow.");
  else if (found.is_complete) showVerdict("good", "Complete.", "The text may end here, or go on.");
  else showVerdict("", text ? "Accepted so far." : "Nothing typed yet.", "The text may not end here.");
}

function showNothing(message) {
  show(find("marks"));
  for (const id of ["expected", "position", "allowed"]) find(id).textContent = "–";
  for (const id of ["insert-forced", "cut", "complete"]) find(id).disabled = true;
  showVerdict("bad", message, "");
}

function showVerdict(kind, strong, rest) {
  find("verdict").className = `verdict ${kind}`;
  show(find("verdict"), make("strong", {}, strong), rest ? ` ${rest}` : "");
}

/** Colour the text behind the field: accepted, forced, illegal, and what must follow. */
function paint(text, found) {
  const parts = [];
  let at = 0;
  const add = (end, kind) => {
    if (end > at) parts.push(make("mark", { class: kind }, text.slice(at, end)));
    at = Math.max(at, end);
  };
  for (const [begin, end] of found.forced_runs) {
    add(begin, "accepted");
    add(end, "forced");
  }
  add(found.accepted, "accepted");
  if (found.refusal) {
    const wide = text.codePointAt(at) > 0xffff ? 2 : 1;
    if (at >= text.length || text[at] === "\n") parts.push(make("mark", { class: "illegal" }, " "));
    add(Math.min(text.length, at + wide), "illegal");
  }
  parts.push(text.slice(at));
  if (!found.refusal && found.forced_next) parts.push(make("mark", { class: "ghost" }, found.forced_next));
  show(find("marks"), ...parts, "\n");
  find("marks").scrollTop = find("typed").scrollTop;
}

function describePosition(found) {
  const parts = [];
  if (found.path) parts.push(list(["document", ...found.path.map((part) => (typeof part === "number" ? `[${part}]` : part))], "crumbs", "Path in the document"));
  if (found.rules.length) parts.push(list(found.rules, "crumbs", "Open rules, the outermost first"));
  if (found.symbols.length) parts.push(make("p", { class: "small" }, "read and not yet reduced:"), list(found.symbols, "", "Stack of the parser"));
  if (found.readings > 1) parts.push(make("p", { class: "small" }, `${found.readings} ways to read the text are open; one is shown.`));
  return parts.length ? parts : ["–"];
}

function list(words, kind = "", name = null) {
  return make("ul", { class: `words ${kind}`, "aria-label": name }, words.map((word) => make("li", {}, String(word))));
}
