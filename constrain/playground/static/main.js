// The page: loads what the server says of itself, the gallery and the state of the link, and connects the views.

import { find, make, settle, show } from "./dom.js";
import { forgetRuns, openSamplers, refreshSamplers } from "./sampler_view.js";
import { read } from "./server.js";
import { loadExample, openSource } from "./source_view.js";
import { announce, change, makeLink, readLink, state } from "./state.js";
import { openSteps, refreshSteps } from "./step_view.js";
import { inspect, openTyping } from "./typing_view.js";

const VIEWS = ["type", "step", "sample"];
const THEMES = [["", "Auto"], ["light", "Light"], ["dark", "Dark"]];

let about = null;

async function open() {
  openTheme();
  try {
    about = await read("about");
  } catch (error) {
    find("verdict").textContent = error.message;
    return;
  }
  const gallery = await read("gallery.json");
  showServer();
  openTyping(about);
  openSteps();
  openSamplers(about);
  openSource(about, gallery, sourceChanged);
  openTabs();
  find("copy-link").addEventListener("click", copyLink);
  addEventListener("hashchange", () => readLink() && load());
  if (!readLink()) loadExample(gallery[0]);
  load();
}

function load() {
  announce();
  select(state.view, false);
  inspect();
}

function showServer() {
  const size = about.vocabulary.toLocaleString("en");
  find("model-note").textContent = about.model === null ? "no model · byte by byte" : `model ${about.model} · ${size} tokens`;
  find("version").textContent = `constrain ${about.version}`;
  const missing = about.model === null;
  for (const notice of document.querySelectorAll(".needs-model")) {
    notice.hidden = !missing;
    if (missing) show(notice, "This view needs a model. Install one with ", make("code", {}, "pip install 'constrain-lm[serve]'"), " and start ", make("code", {}, "constrain play"), " again.");
  }
  for (const part of document.querySelectorAll(".with-model")) part.hidden = missing;
}

const refreshLater = settle(300, () => refreshView());

function sourceChanged() {
  forgetRuns();
  announce();
  inspect();
  refreshLater();
}

function refreshView() {
  if (about.model === null) return;
  if (state.view === "step") refreshSteps();
  if (state.view === "sample") refreshSamplers();
}

function openTabs() {
  for (const view of VIEWS) {
    const tab = find(`tab-${view}`);
    tab.addEventListener("click", () => select(view, true));
    tab.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: 1, ArrowLeft: -1, Home: -VIEWS.indexOf(view), End: VIEWS.length - 1 - VIEWS.indexOf(view) };
      if (!(event.key in moves)) return;
      event.preventDefault();
      select(VIEWS[(VIEWS.indexOf(view) + moves[event.key] + VIEWS.length) % VIEWS.length], true);
    });
  }
}

function select(view, isFocused) {
  change({ view });
  for (const one of VIEWS) {
    const tab = find(`tab-${one}`), isOn = one === view;
    tab.setAttribute("aria-selected", String(isOn));
    tab.tabIndex = isOn ? 0 : -1;
    find(`panel-${one}`).hidden = !isOn;
    if (isOn && isFocused) tab.focus();
  }
  refreshView();
}

async function copyLink() {
  const button = find("copy-link");
  history.replaceState(null, "", makeLink());
  try {
    await navigator.clipboard.writeText(makeLink());
    button.textContent = "Copied";
  } catch {
    button.textContent = "It is in the address bar";
  }
  setTimeout(() => { button.textContent = "Copy link"; }, 2000);
}

function openTheme() {
  let stored = "";
  try { stored = localStorage.getItem("constrain-theme") ?? ""; } catch { /* no storage: the theme is not remembered */ }
  let place = Math.max(0, THEMES.findIndex(([name]) => name === stored));
  const apply = () => {
    const [name, label] = THEMES[place];
    if (name) document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
    find("theme").textContent = label;
    find("theme").setAttribute("aria-label", `Colours: ${label}`);
  };
  find("theme").addEventListener("click", () => {
    place = (place + 1) % THEMES.length;
    try { localStorage.setItem("constrain-theme", THEMES[place][0]); } catch { /* as above */ }
    apply();
  });
  apply();
}

open();
