// The view "Step": the model writes token by token, and one sees what the mask takes away.

import { columns } from "./charts.js";
import { find, make, percent, show, visible } from "./dom.js";
import { ask } from "./server.js";
import { change, sourceObject, state, whenLoaded } from "./state.js";

const BARS = 12;
const MOST_STEPS = 400; // of a run
const COSTLY = 0.5; // tokens chosen where the mask left less than this are underlined

let steps = []; // per position: the report of the server; the last is where the text is now
let isRunning = false;
let wanted = ""; // the constraint and prompt of the steps
let latest = Promise.resolve(); // actions wait for those before them

export function openSteps() {
  find("step-draw").addEventListener("click", () => inTurn(() => take(current()?.choices?.drawn)));
  find("step-likeliest").addEventListener("click", () => inTurn(() => take(current()?.choices?.likeliest)));
  find("step-back").addEventListener("click", () => inTurn(back));
  find("step-restart").addEventListener("click", restart);
  find("step-run").addEventListener("click", () => (isRunning ? stopRun() : run()));
  find("prompt").addEventListener("change", () => {
    change({ prompt: find("prompt").value, tokens: [] });
    find("sample-prompt").value = state.prompt;
    restart();
  });
  whenLoaded(() => { find("prompt").value = state.prompt; });
}

const current = () => steps[steps.length - 1];
const key = () => JSON.stringify([sourceObject(), state.prompt]);

/** Run an action after those before it, on the steps of the constraint and prompt that hold then. */
function inTurn(action) {
  const next = latest.then(loadSteps).then(action);
  latest = next.catch((error) => { find("step-state").textContent = error.message; });
  return next;
}

/** Show the view: the steps of the tokens in the state, unless they are known. */
export const refreshSteps = () => inTurn(() => {});

async function loadSteps() {
  find("prompt").value = state.prompt;
  if (wanted === key() && steps.length === state.tokens.length + 1) return;
  wanted = key();
  steps = [];
  const tokens = state.tokens;
  for (let count = 0; count <= tokens.length; count += 1) {
    if (!(await load(tokens.slice(0, count)))) return;
  }
}

/** Load the report after some tokens. Returns whether there is one. */
async function load(tokens) {
  const asked = wanted;
  find("step-state").textContent = "The model is running …";
  try {
    const report = await ask("step", { source: sourceObject(), prompt: state.prompt, tokens, bars: BARS, seed: state.seed });
    if (asked !== key()) return false; // another constraint: its steps come next
    steps = [...steps.slice(0, tokens.length), report];
    find("step-state").textContent = describeState(report);
    showSteps();
    return true;
  } catch (error) {
    stopRun();
    find("step-state").textContent = error.message;
    showSteps();
    return false;
  }
}

async function take(token) {
  if (token === undefined || token === null || !current() || current().has_ended) return false;
  const tokens = [...state.tokens.slice(0, steps.length - 1), token];
  change({ tokens });
  const isLoaded = await load(tokens);
  if (!isLoaded && state.tokens === tokens) change({ tokens: tokens.slice(0, -1) });
  return isLoaded;
}

function back() {
  stopRun();
  if (steps.length < 2) return;
  steps = steps.slice(0, -1);
  change({ tokens: state.tokens.slice(0, steps.length - 1) });
  find("step-state").textContent = describeState(current());
  showSteps();
}

function restart() {
  stopRun();
  change({ tokens: [] });
  wanted = "";
  refreshSteps();
}

async function run() {
  isRunning = true;
  showRunning();
  while (isRunning && steps.length < MOST_STEPS) {
    if (!(await inTurn(() => take(current()?.choices?.drawn)).catch(() => false))) break;
  }
  stopRun();
}

function stopRun() {
  isRunning = false;
  showRunning();
}

function showRunning() {
  find("step-run").textContent = isRunning ? "Stop" : "Run";
  find("step-run").setAttribute("aria-pressed", String(isRunning));
}

function describeState(report) {
  if (report.has_ended) return "The text has ended.";
  if (report.mass <= 0) return "The model gives no allowed token any probability.";
  const count = report.allowed === 1 ? "1 token is" : `${report.allowed.toLocaleString("en")} tokens are`;
  return `${count} allowed.${report.is_complete ? " The text may end here." : ""}`;
}

function showSteps() {
  const now = current();
  const chosen = steps.slice(0, -1);
  const isOver = !now || now.has_ended || !now.choices;
  for (const id of ["step-draw", "step-likeliest"]) find(id).disabled = isOver;
  find("step-run").disabled = isOver && !isRunning;
  find("step-back").disabled = steps.length < 2;
  const pieces = now?.pieces ?? [];
  show(find("written"), pieces.length ? pieces.map((piece, index) => make("span", {
    class: `token ${chosen[index]?.mass < COSTLY ? "costly" : ""}`, title: chosen[index] ? `mass ${percent(chosen[index].mass)}` : null,
  }, piece)) : make("span", { class: "small" }, "No token yet."));
  const nats = chosen.reduce((sum, one) => sum + (one.nats ?? 0), 0);
  find("step-count").textContent = String(pieces.length);
  find("step-mass").textContent = now && !now.has_ended ? percent(now.mass) : "–";
  find("step-distortion").textContent = `${nats.toFixed(2)} nats`;
  show(find("bars").tBodies[0], (now?.bars ?? []).map(makeRow));
  showMasses(steps.filter((one) => !one.has_ended), pieces);
}

function makeRow(bar) {
  const name = bar.is_end ? "end of text" : visible(bar.piece);
  const cell = bar.is_allowed
    ? make("button", { type: "button", onclick: () => inTurn(() => take(bar.token)), "aria-label": `Take ${name}` }, name)
    : make("span", { class: "refused" }, name);
  return make("tr", {}, make("td", {}, cell), make("td", {}, meter(bar.raw, "raw")),
    make("td", {}, bar.is_allowed ? meter(bar.masked, "") : make("span", { class: "small" }, "refused")));
}

/** A bar with its number. law: where the exact probability is, if it is known. most: the probability of a full bar. */
export function meter(value, kind, law = null, most = 1) {
  const filled = make("span", { class: "fill" });
  filled.style.width = `${100 * Math.min(1, value / most)}%`;
  const track = make("span", { class: "track", "aria-hidden": "true" }, filled);
  if (law !== null) {
    const tick = make("span", { class: "law" });
    tick.style.left = `${100 * Math.min(1, law / most)}%`;
    track.append(tick);
  }
  return make("span", { class: `meter ${kind}` }, track, make("span", { class: "value" }, percent(value)));
}

function showMasses(reports, pieces) {
  const masses = reports.map((one) => one.mass);
  show(find("mass-chart"), columns(masses, `Mass left by the mask at each of ${masses.length} steps; the numbers are in the table.`));
  let sum = 0;
  show(find("mass-table").tBodies[0], reports.map((one, index) => {
    sum += one.nats ?? 0;
    const piece = pieces[index] === undefined ? "next" : visible(pieces[index]);
    return make("tr", {}, make("td", {}, String(index + 1)), make("td", {}, piece), make("td", {}, percent(one.mass)),
      make("td", {}, one.nats === null ? "∞" : sum.toFixed(2)));
  }));
}
