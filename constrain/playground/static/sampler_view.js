// The view "Sample": samplers side by side, and how their histograms approach the exact law.

import { lines } from "./charts.js";
import { find, make, percent, show, visible } from "./dom.js";
import { ask, follow } from "./server.js";
import { change, sourceObject, state, whenLoaded } from "./state.js";
import { meter } from "./step_view.js";

const SHOWN = 8; // texts in a histogram
const NOTES = {
  masked: "token by token; weights correct it", awrs: "adaptive rejection; weights correct it", asap: "learns what prefixes lose",
  exact: "the law from the first draw on", smc: "8 particles for each draw", pimh: "Markov chain over particles",
};

let law = null;
let runs = new Map(); // by sampler: the latest state, and the distances so far
let controller = null;

export function openSamplers(facts) {
  show(find("samplers"), facts.samplers.map((name) => make("label", { title: NOTES[name] ?? "" },
    make("input", { type: "checkbox", value: name, onchange: readControls }), name)));
  for (const id of ["draws", "most-tokens", "seed"]) find(id).addEventListener("change", readControls);
  find("weighing").addEventListener("change", () => { readControls(); showRuns(); });
  find("sample-prompt").addEventListener("change", () => {
    change({ prompt: find("sample-prompt").value, tokens: [] });
  });
  find("sample-run").addEventListener("click", run);
  find("sample-stop").addEventListener("click", () => controller?.abort());
  whenLoaded(showControls);
}

function showControls() {
  for (const box of find("samplers").querySelectorAll("input")) box.checked = state.samplers.includes(box.value);
  find("draws").value = state.draws;
  find("most-tokens").value = state.most;
  find("seed").value = state.seed;
  find("weighing").value = state.weighing;
  find("sample-prompt").value = state.prompt;
}

function readControls() {
  const number = (id, low, high) => Math.round(Math.min(high, Math.max(low, Number(find(id).value) || low)));
  change({
    samplers: [...find("samplers").querySelectorAll("input:checked")].map((box) => box.value), draws: number("draws", 8, 512),
    most: number("most-tokens", 1, 256), seed: number("seed", 0, 4294967295), weighing: find("weighing").value,
  });
  showControls();
}

/** Show the view; a constraint that has changed makes what was drawn stale. */
export function refreshSamplers() {
  find("sample-prompt").value = state.prompt;
}

export function forgetRuns() {
  controller?.abort();
  law = null;
  runs = new Map();
  show(find("histograms"));
  find("convergence").hidden = true;
  find("law-legend").hidden = true;
  find("sample-state").textContent = "";
}

async function run() {
  forgetRuns();
  const mine = controller = new AbortController();
  if (!state.samplers.length) {
    find("sample-state").textContent = "Choose at least one sampler.";
    return;
  }
  find("sample-run").disabled = true;
  find("sample-stop").disabled = false;
  find("sample-state").textContent = "Computing the exact law …";
  const common = { source: sourceObject(), prompt: state.prompt };
  try {
    law = await ask("law", common, mine.signal);
    find("sample-state").textContent = describeLaw();
    await Promise.all(state.samplers.map((name, place) => drawFrom(name, place + 1, common, mine.signal)));
    find("sample-state").textContent = `${describeLaw()} Done.`;
  } catch (error) {
    mine.abort();
    find("sample-state").textContent = error.name === "AbortError" ? "Stopped." : error.message;
  }
  if (controller === mine) {
    find("sample-run").disabled = false;
    find("sample-stop").disabled = true;
  }
}

async function drawFrom(name, colour, common, signal) {
  const body = { ...common, sampler: name, draws: state.draws, max_tokens: state.most, seed: state.seed };
  for await (const event of follow("sample", body, signal)) {
    const known = runs.get(name) ?? { colour, history: [] };
    known.history.push({ drawn: event.drawn, counts: distance(normalise(event.counts)), shares: distance(event.shares), ess: event.ess });
    runs.set(name, { ...known, latest: event });
    showRuns();
  }
}

function describeLaw() {
  if (!law.texts) return `There is no exact law to compare with: ${law.reason}.`;
  const count = Object.keys(law.texts).length;
  return `${count} texts; the model satisfies the constraint with probability ${percent(Math.exp(law.log_total))}.`;
}

function normalise(counts) {
  const total = Object.values(counts).reduce((sum, one) => sum + one, 0);
  return Object.fromEntries(Object.entries(counts).map(([text, count]) => [text, count / total]));
}

/** The total variation between a histogram and the law; null if there is no law. */
function distance(shares) {
  if (!law?.texts) return null;
  const texts = new Set([...Object.keys(law.texts), ...Object.keys(shares)]);
  let sum = 0;
  for (const text of texts) sum += Math.abs((law.texts[text] ?? 0) - (shares[text] ?? 0));
  return sum / 2;
}

function showRuns() {
  const cards = [...runs].sort((one, other) => one[1].colour - other[1].colour);
  const most = Math.max(0.01, ...Object.values(law?.texts ?? {}), ...cards.flatMap(([, one]) => Object.values(sharesOf(one))));
  show(find("histograms"), cards.map(([name, one]) => makeCard(name, one, most)));
  find("law-legend").hidden = !law?.texts;
  const compared = law?.texts && cards.length;
  find("convergence").hidden = !compared;
  if (!compared) return;
  const series = cards.map(([name, one]) => ({ name, colour: one.colour, points: one.history.map((row) => [row.drawn, row[state.weighing]]) }));
  show(find("distance-chart"), lines(series, "Distance of each sampler’s histogram from the exact law by draws; the numbers are in the table."));
  show(find("distance-table").tBodies[0], cards.map(([name, one]) => {
    const last = one.history[one.history.length - 1];
    return make("tr", {}, make("td", {}, make("span", { class: `swatch series-${one.colour}` }), name), make("td", {}, String(last.drawn)), make("td", {}, last[state.weighing].toFixed(3)),
      make("td", {}, last.ess.toFixed(1)));
  }));
}

const sharesOf = (one) => (state.weighing === "counts" ? normalise(one.latest.counts) : one.latest.shares);

function makeCard(name, one, most) {
  const shares = sharesOf(one);
  const ranked = Object.entries(law?.texts ?? shares).sort((a, b) => b[1] - a[1]).map(([text]) => text);
  const shown = [...new Set([...ranked, ...Object.keys(shares)])].slice(0, SHOWN);
  const rows = shown.map((text) => make("tr", {}, make("td", { title: text }, visible(text)),
    make("td", {}, meter(shares[text] ?? 0, "", law?.texts ? law.texts[text] ?? 0 : null, most)),
    law?.texts ? make("td", { class: "exact" }, percent(law.texts[text] ?? 0)) : null));
  const heads = ["Text", state.weighing === "counts" ? "Drawn" : "Weighted", ...(law?.texts ? ["Exact"] : [])];
  const unfinished = one.latest.unfinished ? `, ${one.latest.unfinished} unfinished` : "";
  return make("section", { class: "card", "aria-label": `Sampler ${name}` },
    make("h3", {}, make("span", {}, make("span", { class: `swatch series-${one.colour}` }), name), make("small", {}, `${one.latest.drawn} draws${unfinished}`)),
    make("table", {}, make("thead", {}, make("tr", {}, heads.map((word) => make("th", { scope: "col" }, word)))),
      make("tbody", {}, rows)));
}
