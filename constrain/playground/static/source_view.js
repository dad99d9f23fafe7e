// The constraint: its kind, its option, its text, and the gallery of examples.

import { find, make, settle, show } from "./dom.js";
import { change, state, whenLoaded } from "./state.js";

const KINDS = { schema: "JSON Schema", regex: "Regular expression", lark: "Grammar (Lark)", gbnf: "Grammar (GBNF)", tools: "Tools" };
const OPTIONS = {
  schema: ["Spelling of JSON", { default: "as models write it", compact: "without white space", any: "all that JSON allows" }],
  regex: ["", {}],
  lark: ["Lexer", {}],
  gbnf: ["Dialect", { "llama.cpp": "llama.cpp", xgrammar: "XGrammar" }],
  tools: ["Format of calls", {}],
};

let gallery = [];
let about = null;

/** Prepare the controls. changed: called when the constraint is another one. */
export function openSource(facts, examples, changed) {
  about = facts;
  gallery = examples;
  show(find("kind"), Object.keys(facts.kinds).map((kind) => make("option", { value: kind }, KINDS[kind] ?? kind)));
  show(find("example"), make("option", { value: "" }, "choose …"),
    gallery.map((example, index) => make("option", { value: index }, example.name)));
  const later = settle(200, changed);
  find("source").addEventListener("input", () => {
    change({ source: find("source").value, tokens: [] });
    find("example").value = "";
    later();
  });
  find("kind").addEventListener("change", () => {
    change({ kind: find("kind").value, option: about.kinds[find("kind").value][0], tokens: [] });
    showSource();
    changed();
  });
  find("option").addEventListener("change", () => {
    change({ option: find("option").value, tokens: [] });
    changed();
  });
  find("example").addEventListener("change", () => {
    const example = gallery[find("example").value];
    if (example) loadExample(example);
    changed();
  });
  whenLoaded(showSource);
}

/** Take an example, without its view. */
export function loadExample(example) {
  change({
    kind: example.kind, option: example.option, source: example.text, typed: example.typed, prompt: example.prompt ?? "", tokens: [],
  });
  showSource();
}

function showSource() {
  if (!about.kinds[state.kind]) change({ kind: "schema", option: "default" });
  const options = about.kinds[state.kind];
  if (!options.includes(state.option)) change({ option: options[0] });
  const [name, labels] = OPTIONS[state.kind] ?? ["Option", {}];
  find("kind").value = state.kind;
  find("option-name").textContent = name;
  find("option-field").hidden = options.length < 2;
  show(find("option"), options.map((option) => make("option", { value: option }, labels[option] ?? option)));
  find("option").value = state.option;
  if (find("source").value !== state.source) find("source").value = state.source;
  const matching = gallery.findIndex((example) => example.text === state.source && example.kind === state.kind);
  find("example").value = matching < 0 ? "" : String(matching);
}

/** Show that the source is refused, and why; with "" that it is accepted. */
export function showSourceError(message, warnings = []) {
  find("source-error").hidden = !message;
  find("source-error").textContent = message;
  find("source").setAttribute("aria-invalid", String(Boolean(message)));
  find("source-state").textContent = message ? "The constraint is refused:" : warnings.join(" ");
}
