// Brings the page to life. Without scripts it is complete but for the history.
import { Cases } from "./cases.js";
import { Graph } from "./graph.js";
import { History } from "./history.js";
import { Timeline } from "./timeline.js";
import { Explorer } from "./explore.js";
import { Details } from "./details.js";
import { Links } from "./links.js";

/** Shows the anomalies of one pattern and level. */
function filterAnomalies(section) {
  const [kind, level] = ["kind", "level"].map((name) => section.querySelector(`select[name=${name}]`));
  const count = section.querySelector(".count");
  const all = [...section.querySelectorAll("[data-kind]")];
  const update = () => {
    let shown = 0;
    for (const one of all) {
      const fits = (!kind.value || one.dataset.kind === kind.value) && (!level.value || one.dataset.levels.split(" ").includes(level.value));
      one.hidden = !fits;
      if (fits && !one.classList.contains("entry")) shown++;
    }
    const total = all.filter((one) => !one.classList.contains("entry")).length;
    count.textContent = `${shown} of ${total} shown`;
  };
  kind.addEventListener("change", update);
  level.addEventListener("change", update);
  update();
}

/** The part of the history around an anomaly: its sessions, and a little time on either side. */
function timelineAround(place, history, links) {
  const anomaly = history.anomalies[Number(place.dataset.number) - 1];
  const { txns } = anomaly;
  if (txns.length === 0) return;
  const sessions = [...new Set(txns.map((txn) => history.sessionOf[txn]))].sort((a, b) => a - b);
  const from = Math.min(...txns.map((txn) => history.from[txn]));
  const until = Math.max(...txns.map((txn) => history.until[txn]));
  const around = (until - from) * 0.25 || 1;
  new Timeline(place, history, {
    label: `Timeline of the sessions around anomaly ${anomaly.number}`,
    sessions,
    anomalies: [anomaly],
    range: [from - around, until + around],
    height: 420,
    links,
  });
}

function chooseTheme(button) {
  const themes = ["light dark", "light", "dark"];
  const names = ["as the system has it", "light", "dark"];
  let at = 0;
  button.hidden = false;
  button.addEventListener("click", () => {
    at = (at + 1) % themes.length;
    document.documentElement.style.colorScheme = themes[at];
    button.textContent = `Colours: ${names[at]}`;
    window.dispatchEvent(new Event("themechange"));
  });
}

/** Opens what an address points to, if it is folded. */
function unfold() {
  const target = window.location.hash.length > 1 ? document.getElementById(window.location.hash.slice(1)) : null;
  for (let place = target; place; place = place.parentElement) if (place.tagName === "DETAILS") place.open = true;
  target?.scrollIntoView();
}

async function start() {
  window.addEventListener("hashchange", unfold);
  unfold();
  chooseTheme(document.getElementById("theme"));
  document.querySelectorAll(".graph").forEach((place) => new Graph(place));
  document.querySelectorAll(".cases").forEach((place) => new Cases(place));
  const anomalies = document.getElementById("anomalies");
  if (anomalies?.querySelector("select")) filterAnomalies(anomalies);
  // A page on several histories has none of them in it.
  if (document.getElementById("history-frame")) await bringHistory();
  document.documentElement.dataset.ready = "true";
}

async function bringHistory() {
  const place = document.getElementById("history");
  const history = await History.load();
  const links = new Links(history, new Details(history), history.bands);
  new Explorer(place, history, links);
  for (const around of document.querySelectorAll(".around")) timelineAround(around, history, links);
  await history.done;
  links.timelines.forEach((timeline) => timeline.draw());
  links.follow();
}

start().catch((error) => {
  console.error(error);
  const trouble = document.getElementById("trouble");
  if (trouble) trouble.textContent = `The history in this file could not be read: ${error}`;
});
