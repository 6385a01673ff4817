// Brings the page to life. Without scripts it is complete but for the history.
import { Cases } from "./cases.js";
import { Graph } from "./graph.js";
import { History } from "./history.js";
import { Timeline } from "./timeline.js";
import { Explorer } from "./explore.js";
import { Details, button, copied } from "./details.js";
import { Links } from "./links.js";

/** How many lines of a long list are shown at once. */
const PAGE = 50;

/** How many anomalies an element stands for: a card for one, a group for many, a line of the list for none. */
function countOf(element) {
  return element.classList.contains("entry") ? 0 : Number(element.dataset.count ?? 1);
}

/** Long lists are shown a page at a time. */
function turnPages(list) {
  const hidden = [...list.children].slice(PAGE);
  if (hidden.length === 0) return;
  hidden.forEach((item) => (item.hidden = true));
  const label = () => `Show more of the ${hidden.length.toLocaleString("en")} that follow`;
  const more = button(label(), () => {
    hidden.splice(0, PAGE).forEach((item) => (item.hidden = false));
    if (hidden.length === 0) more.remove();
    else more.textContent = label();
  }, "link");
  list.after(more);
}

/** Long texts can be opened and copied where they stand. */
function openLongTexts(part) {
  for (const text of part.querySelectorAll("bdi.long")) {
    const [short, whole] = [text.textContent, text.title];
    const more = button("more", () => {
      const isShort = text.textContent === short;
      text.textContent = isShort ? whole : short;
      more.textContent = isShort ? "less" : "more";
    }, "link small");
    const copy = button("copy", () => copied(copy, whole), "link small");
    text.after(" ", more, " ", copy);
  }
}

/** A card can be taken along as Markdown, for an issue or a mail. */
function offerMarkdown(markdown) {
  const copy = button("Copy as Markdown", () => copied(copy, markdown.textContent), "small");
  markdown.closest("article").querySelector("h3").after(copy);
}

/** What is to be pasted somewhere is copied with one click. */
function offerCopy(text) {
  const copy = button("Copy", () => copied(copy, text.textContent), "small");
  text.before(copy);
}

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
      if (fits) shown += countOf(one);
    }
    const total = all.reduce((sum, one) => sum + countOf(one), 0);
    count.textContent = `${shown.toLocaleString("en")} of ${total.toLocaleString("en")} shown`;
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

/** Opens what an address points to, if it is folded. Transactions and keys are in the part that they name. */
function unfold() {
  const address = window.location.hash.slice(1);
  const named = address === "" ? null : document.getElementById(address);
  const target = named ?? document.getElementById(/^(h\d+)-[tk]\d+$/.exec(address)?.[1]);
  for (let place = target; place; place = place.parentElement) {
    if (place.tagName === "DETAILS") place.open = true;
    place.hidden = false;
  }
  named?.scrollIntoView();
}

/** Brings the part of one history to life. */
async function enliven(part) {
  part.querySelectorAll(".in-short").forEach(turnPages);
  openLongTexts(part);
  part.querySelectorAll("pre.markdown").forEach(offerMarkdown);
  part.querySelectorAll("pre.copied").forEach(offerCopy);
  part.querySelectorAll(".graph").forEach((place) => new Graph(place));
  part.querySelectorAll(".cases").forEach((place) => new Cases(place));
  const anomalies = part.querySelector(".anomalies");
  if (anomalies?.querySelector("select")) filterAnomalies(anomalies);
  if (part.querySelector(".history-frame")) await bringHistory(part);
  part.dataset.ready = "true";
}

async function bringHistory(part) {
  const history = await History.load(part);
  const links = new Links(part, history, new Details(part, history));
  new Explorer(part.querySelector(".history"), history, links);
  for (const around of part.querySelectorAll(".around")) timelineAround(around, history, links);
  await history.done;
  links.timelines.forEach((timeline) => timeline.draw());
  links.follow();
}

function complain(part, error) {
  console.error(error);
  const trouble = part.querySelector(".trouble");
  if (trouble) trouble.textContent = `The history in this file could not be read: ${error}`;
}

/** A part that is folded waits until somebody opens it. */
async function begin(part) {
  if (part.tagName !== "DETAILS" || part.open) return enliven(part).catch((error) => complain(part, error));
  const opened = () => part.open && begin(part);
  part.addEventListener("toggle", opened, { once: true });
}

async function start() {
  window.addEventListener("hashchange", unfold);
  unfold();
  chooseTheme(document.getElementById("theme"));
  await Promise.all([...document.querySelectorAll(".part")].map(begin));
  document.documentElement.dataset.ready = "true";
}

start();
