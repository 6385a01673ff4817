// The whole history: its timeline, and search.
import { element } from "./details.js";
import { Timeline } from "./timeline.js";

const MOST_FOUND = 30;

/** The sessions by name, numbers by size. */
function inOrder(sessions) {
  const collator = new Intl.Collator("en", { numeric: true });
  return sessions.map((_, at) => at).sort((a, b) => collator.compare(sessions[a].name, sessions[b].name));
}

export class Explorer {
  constructor(place, history, links) {
    this.history = history;
    this.links = links;
    this.results = place.querySelector(".results");
    this.timeline = new Timeline(place.querySelector(".whole"), history, {
      label: `The whole history: ${history.count} transactions in ${history.sessions.length} sessions`,
      sessions: inOrder(history.sessions),
      anomalies: history.anomalies,
      height: 480,
      links,
      isWhole: true,
    });
    const input = place.querySelector("input[type=search]");
    let waiting;
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.search(input.value.trim()), 120);
    });
    place.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.search(input.value.trim());
    });
  }

  search(query) {
    this.results.replaceChildren();
    if (query === "") return;
    const { history, links } = this;
    const wanted = query.toLowerCase();
    const txns = this.best(history.count, (txn) => this.fits(history.names[txn], wanted));
    const keys = this.best(history.keys.length, (key) => this.fits(history.keys[key], wanted));
    const values = this.values(wanted);
    this.group("Transactions", txns, (txn) => [links.link({ txn }), ` (session ${history.sessionName(txn)}, ${history.outcome(txn)})`]);
    this.group("Keys", keys, (key) => [links.link({ key })]);
    this.group("Values", values, ({ txn, op }) => [element("code", op.text), " in ", links.link({ txn })]);
    if (keys.length + txns.length + values.length === 0) {
      this.results.append(element("p", "Nothing of that name in this file."));
    }
  }

  /** How well a name fits: 3 the same, 2 but for the letter before its number, 1 a part, 0 not. */
  fits(name, wanted) {
    const text = name.toLowerCase();
    if (text === wanted) return 3;
    if (/^[t#]\d/.test(text) && text.slice(1) === wanted) return 2;
    return text.includes(wanted) ? 1 : 0;
  }

  /** Those that fit, best first. */
  best(count, fit) {
    const found = [[], [], [], []];
    for (let at = 0; at < count; at++) found[fit(at)].push(at);
    return [...found[3], ...found[2], ...found[1]];
  }

  /** Operations on values that begin so: the value itself first, writes before reads. */
  values(wanted) {
    const found = [[], [], [], []];
    const rank = (value) => {
      const text = String(value).toLowerCase();
      return text === wanted ? 0 : text.startsWith(wanted) || text.startsWith(`"${wanted}`) ? 2 : null;
    };
    for (let txn = 0; txn < this.history.count; txn++) {
      for (const op of this.history.ops[txn] ?? []) {
        const isWrite = op.written !== undefined;
        const at = rank(isWrite ? op.written : (op.read ?? ""));
        if (at !== null) found[at + (isWrite ? 0 : 1)].push({ txn, op });
      }
    }
    return found.flat();
  }

  group(title, found, show) {
    if (found.length === 0) return;
    const list = element("ul");
    for (const one of found.slice(0, MOST_FOUND)) {
      const item = element("li");
      item.append(...show(one));
      list.append(item);
    }
    const count = found.length.toLocaleString("en");
    const more = found.length > MOST_FOUND ? `, of which the first ${MOST_FOUND}` : "";
    this.results.append(element("h4", `${title}: ${count}${more}`), list);
  }
}
