// Brings the page to life. Without scripts it is complete but for the history.
import { Cases } from "./cases.js";
import { Graph } from "./graph.js";
import { History } from "./history.js";
import { Timeline } from "./timeline.js";
import { Explorer } from "./explore.js";

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
function timelineAround(place, history, explorer) {
  const marked = place.dataset.txns.split(" ").filter(Boolean).map(Number);
  if (marked.length === 0) return;
  const sessions = [...new Set(marked.map((txn) => history.sessionOf[txn]))].sort((a, b) => a - b);
  const from = Math.min(...marked.map((txn) => history.from[txn]));
  const until = Math.max(...marked.map((txn) => history.until[txn]));
  const around = (until - from) * 0.25 || 1;
  new Timeline(place, history, {
    label: `Timeline of the sessions around anomaly ${place.dataset.number}`,
    sessions,
    marked,
    range: [from - around, until + around],
    height: 260,
    onSelect: (txn) => explorer.showTransaction(txn),
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

async function start() {
  chooseTheme(document.getElementById("theme"));
  document.querySelectorAll(".graph").forEach((place) => new Graph(place));
  document.querySelectorAll(".cases").forEach((place) => new Cases(place));
  const anomalies = document.getElementById("anomalies");
  if (anomalies.querySelector("select")) filterAnomalies(anomalies);
  const place = document.getElementById("history");
  const history = await History.load();
  const explorer = new Explorer(place, history, marks());
  for (const around of document.querySelectorAll(".around")) timelineAround(around, history, explorer);
  await history.done;
  document.documentElement.dataset.ready = "true";
}

function marks() {
  const places = [...document.querySelectorAll(".around")];
  return places.flatMap((place) => place.dataset.txns.split(" ").filter(Boolean).map(Number));
}

start().catch((error) => {
  console.error(error);
  document.getElementById("trouble").textContent = `The history in this file could not be read: ${error}`;
});
