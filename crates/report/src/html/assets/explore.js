// The whole history: its timeline, search, the transaction that was chosen, and the versions of a key.
import { Timeline } from "./timeline.js";

const MOST_FOUND = 30;
const PAGE_OF_VERSIONS = 200;

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** The sessions by name, numbers by size. */
function inOrder(sessions) {
  const collator = new Intl.Collator("en", { numeric: true });
  return sessions.map((_, at) => at).sort((a, b) => collator.compare(sessions[a].name, sessions[b].name));
}

/** A word that leads somewhere. */
function link(text, act) {
  const button = element("button", text, "link");
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}

export class Explorer {
  constructor(place, history, marked) {
    this.history = history;
    this.place = place;
    this.details = place.querySelector(".details");
    this.results = place.querySelector(".results");
    this.timeline = new Timeline(place.querySelector(".whole"), history, {
      label: `The whole history: ${history.count} transactions in ${history.sessions.length} sessions`,
      sessions: inOrder(history.sessions),
      marked,
      height: 480,
      onSelect: (txn) => this.showTransaction(txn),
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

  /** Opens a transaction in the timeline. */
  reveal(txn) {
    this.timeline.reveal(txn);
    this.place.scrollIntoView({ block: "start" });
  }

  search(query) {
    this.results.replaceChildren();
    if (query === "") return;
    const { history } = this;
    const wanted = query.toLowerCase();
    const has = (text) => String(text).toLowerCase().includes(wanted);
    const is = (text) => String(text).toLowerCase() === wanted;
    const best = (found, text) => found.sort((a, b) => is(text(b)) - is(text(a)));
    const keys = best(this.where(history.keys.length, (key) => has(history.keys[key])), (key) => history.keys[key]);
    const name = (txn) => history.names[txn];
    const txns = best(this.where(history.count, (txn) => has(name(txn)) || is(name(txn).slice(1))), name);
    const values = this.values(wanted);
    this.group("Keys", keys, (key) => link(history.keys[key], () => this.showKey(key)));
    this.group("Transactions", txns, (txn) =>
      link(`${name(txn)} (session ${history.sessionName(txn)}, ${history.outcome(txn)})`, () => this.reveal(txn)),
    );
    this.group("Values", values, ({ txn, op }) => link(`${op.text} in ${name(txn)}`, () => this.reveal(txn)));
    if (keys.length + txns.length + values.length === 0) {
      this.results.append(element("p", "Nothing of that name in this file."));
    }
  }

  where(count, test) {
    const found = [];
    for (let at = 0; at < count; at++) if (test(at)) found.push(at);
    return found;
  }

  /** Operations that read or wrote a value, writes first. */
  values(wanted) {
    const [writes, reads] = [[], []];
    for (let txn = 0; txn < this.history.count; txn++) {
      for (const op of this.history.ops[txn] ?? []) {
        if (String(op.written ?? "").toLowerCase() === wanted) writes.push({ txn, op });
        else if (String(op.read ?? "").toLowerCase() === wanted) reads.push({ txn, op });
      }
    }
    return writes.concat(reads);
  }

  group(title, found, show) {
    if (found.length === 0) return;
    const list = element("ul");
    for (const one of found.slice(0, MOST_FOUND)) {
      const item = element("li");
      item.append(show(one));
      list.append(item);
    }
    const more = found.length > MOST_FOUND ? `, of which the first ${MOST_FOUND}` : "";
    this.results.append(element("h4", `${title}: ${found.length}${more}`), list);
  }

  showTransaction(txn) {
    const { history } = this;
    const heading = element("h3", `${history.names[txn]}, session ${history.sessionName(txn)}, ${history.outcome(txn)}`);
    const facts = [];
    if (history.isTimed) {
      facts.push(`from ${history.moment(history.start[txn])} to ${history.moment(history.finish[txn])}`);
    }
    if (history.lines[txn] > 0) facts.push(`line ${history.lines[txn]} of the history`);
    const parts = [heading, element("p", facts.join(", "))];
    const ops = history.ops[txn];
    if (ops) parts.push(this.operations(txn, ops));
    else parts.push(element("p", "Its operations were left out to keep this file small."));
    this.details.replaceChildren(...parts);
  }

  operations(txn, ops) {
    const { history } = this;
    const list = element("ol", undefined, "operations");
    for (const op of ops) {
      const item = element("li");
      item.append(element("code", op.text));
      if (op.key !== undefined) {
        item.append(" ", link(`all versions of ${history.keys[op.key]}`, () => this.showKey(op.key)));
      }
      const writer = op.read === undefined ? undefined : history.index()[op.key].writers.get(op.read);
      if (writer !== undefined && writer !== txn) {
        item.append(" ", link(`from ${history.names[writer]}`, () => this.reveal(writer)));
      }
      list.append(item);
    }
    return list;
  }

  showKey(key) {
    const { words, rows } = this.history.versions(key);
    const name = this.history.keys[key];
    const heading = element("h3", `Versions of ${name}: ${rows.length}, ${words}`);
    const table = element("table");
    const caption = element("caption", `Versions of ${name}`);
    const head = element("tr");
    for (const title of ["#", "Version", "Written by", "Session", "Read by"]) {
      const cell = element("th", title);
      cell.scope = "col";
      head.append(cell);
    }
    table.append(caption, head);
    this.details.replaceChildren(heading, table);
    this.moreVersions(table, rows, 0);
    heading.tabIndex = -1;
    heading.focus();
  }

  moreVersions(table, rows, from) {
    const { history } = this;
    const until = Math.min(rows.length, from + PAGE_OF_VERSIONS);
    for (let at = from; at < until; at++) {
      const { txn, op, readers } = rows[at];
      const row = element("tr");
      const aborted = history.outcome(txn) === "aborted" ? " (aborted)" : "";
      const writer = element("td");
      writer.append(link(history.names[txn], () => this.reveal(txn)), aborted);
      const reading = element("td");
      readers.slice(0, 8).forEach((reader) => reading.append(link(history.names[reader], () => this.reveal(reader)), " "));
      if (readers.length > 8) reading.append(`and ${readers.length - 8} more`);
      const version = element("td");
      version.append(element("code", op.text));
      row.append(element("td", String(at + 1)), version, writer, element("td", history.sessionName(txn)), reading);
      table.append(row);
    }
    if (until === rows.length) return;
    const more = link(`Show more of the ${rows.length - until} that follow`, () => {
      more.remove();
      this.moreVersions(table, rows, until);
    });
    this.details.append(more);
  }
}
