// What is known of a transaction or a key, beside what was clicked.

const PAGE_OF_VERSIONS = 100;
const WIDTH = 560;
/** Longer values are shown in part, with a way to see and copy the whole. */
const LONGEST = 60;

export function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

export function button(text, act, className) {
  const made = element("button", text, className);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

/** A text from outside: whatever direction it runs in stays inside, and a long one can be opened. */
export function outside(text, name = "code") {
  const shown = element(name);
  const whole = element("bdi", text);
  if (text.length <= LONGEST) {
    shown.append(whole);
    return shown;
  }
  const end = Math.floor((LONGEST * 2) / 5);
  const short = element("bdi", `${text.slice(0, LONGEST - end)}…${text.slice(-end)}`);
  const more = button("more", () => {
    const isShort = shown.firstChild === short;
    shown.replaceChild(isShort ? whole : short, shown.firstChild);
    more.textContent = isShort ? "less" : "more";
  }, "link small");
  const copy = button("copy", () => copied(copy, text), "link small");
  shown.append(short, " ", more, " ", copy);
  return shown;
}

/** Copies a text, and says so on the button that asked for it. */
export async function copied(asked, text) {
  const before = asked.textContent;
  try {
    await navigator.clipboard.writeText(text);
    asked.textContent = "copied";
  } catch {
    asked.textContent = "the browser does not allow it";
  }
  setTimeout(() => (asked.textContent = before), 1500);
}

export class Details {
  constructor(part, history) {
    this.history = history;
    this.panel = element("section", undefined, "details");
    this.panel.hidden = true;
    this.panel.tabIndex = -1;
    this.body = element("div");
    const close = button("×", () => this.close(), "close");
    close.setAttribute("aria-label", "Close");
    this.panel.append(close, this.body);
    part.append(this.panel);
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  /** `rect`: where that is on the screen to which the panel belongs. */
  show(what, opener, rect) {
    const isInside = this.panel.contains(opener);
    if (!isInside) this.opener = opener;
    const parts = what.txn === undefined ? this.key(what.key) : this.transaction(what.txn);
    this.body.replaceChildren(...parts);
    this.panel.setAttribute("aria-label", parts[0].textContent);
    this.panel.hidden = false;
    if (!isInside) this.place(rect);
    this.panel.focus({ preventScroll: true });
  }

  /** Below what was clicked; above it where there is no room below. */
  place(rect) {
    const room = document.documentElement.clientWidth;
    const width = Math.min(WIDTH, room - 16);
    const left = Math.min(Math.max(8, rect.left), room - width - 8);
    this.panel.style.width = `${width}px`;
    this.panel.style.left = `${left + window.scrollX}px`;
    const height = this.panel.offsetHeight;
    const isBelow = rect.bottom + height + 8 <= window.innerHeight || rect.top < height + 8;
    const top = isBelow ? rect.bottom + 6 : rect.top - height - 6;
    this.panel.style.top = `${top + window.scrollY}px`;
  }

  close() {
    if (this.panel.hidden) return;
    this.panel.hidden = true;
    this.opener?.focus({ preventScroll: true });
  }

  transaction(txn) {
    const { history, links } = this;
    const heading = element("h3");
    heading.append(element("bdi", history.names[txn]), `, session `, element("bdi", history.sessionName(txn)), `, ${history.outcome(txn)}`);
    const facts = element("dl", undefined, "facts");
    const fact = (name, ...what) => {
      const cell = element("dd");
      cell.append(...what);
      facts.append(element("dt", name), cell);
    };
    if (history.isTimed) {
      fact("Ran", `from ${history.moment(history.start[txn])} to ${history.moment(history.finish[txn])}${history.lasted(txn)}`);
    }
    if (history.lines[txn] > 0) fact("Line", `${history.lines[txn]} of the history`);
    for (const [name, what] of history.facts.get(txn) ?? []) fact(name[0].toUpperCase() + name.slice(1), outside(what, "span"));
    const found = history.anomalies.filter((anomaly) => anomaly.txns.includes(txn)).slice(0, 8);
    if (found.length > 0) fact("Part of", ...found.flatMap(({ number, kind }) => [this.anomaly(number, kind), " "]));
    const ops = history.ops[txn];
    const list = ops ? this.operations(txn, ops) : element("p", "Its operations were left out to keep this file small.");
    const show = button("Show on the timeline", () => {
      const [whole] = links.timelines;
      whole.reveal(txn);
      whole.scroller.scrollIntoView({ block: "center" });
      this.place(whole.rect(txn));
    });
    return [heading, facts, list, show];
  }

  anomaly(number, kind) {
    const link = element("a", `${number}. ${kind}`);
    link.href = `#${this.links.prefix}a${number}`;
    return link;
  }

  operations(txn, ops) {
    const { history, links } = this;
    const list = element("ol", undefined, "operations");
    for (const op of ops) {
      const item = element("li");
      item.append(outside(op.text));
      if (op.key !== undefined) item.append(" ", links.link({ key: op.key }, "all versions"));
      const writer = history.writerOf(op);
      if (writer !== undefined && writer !== txn) item.append(", written by ", links.link({ txn: writer }));
      if (op.sql) item.append(element("br"), outside(op.sql));
      list.append(item);
    }
    return list;
  }

  key(key) {
    const { words, rows } = this.history.versions(key);
    const heading = element("h3", "Versions of ");
    heading.append(outside(this.history.keys[key], "span"), `: ${rows.length.toLocaleString("en")}, ${words}`);
    const table = element("table");
    const head = element("tr");
    for (const title of ["#", "Version", "Written by", "Session", "Read by"]) {
      const cell = element("th", title);
      cell.scope = "col";
      head.append(cell);
    }
    table.append(element("caption", "In this order"), head);
    const place = element("div", undefined, "versions");
    place.append(table);
    place.tabIndex = 0;
    this.moreVersions(place, table, rows, 0);
    return [heading, place];
  }

  moreVersions(place, table, rows, from) {
    const { history, links } = this;
    const until = Math.min(rows.length, from + PAGE_OF_VERSIONS);
    for (let at = from; at < until; at++) {
      const { txn, op, readers } = rows[at];
      const row = element("tr");
      const [version, writer, session, reading] = ["td", "td", "td", "td"].map((name) => element(name));
      writer.append(links.link({ txn }), history.outcome(txn) === "aborted" ? " (aborted)" : "");
      readers.slice(0, 8).forEach((reader) => reading.append(links.link({ txn: reader }), " "));
      if (readers.length > 8) reading.append(`and ${readers.length - 8} more`);
      version.append(outside(op.text));
      session.append(element("bdi", history.sessionName(txn)));
      row.append(element("td", String(at + 1)), version, writer, session, reading);
      table.append(row);
    }
    if (until === rows.length) return;
    const more = button(`Show more of the ${(rows.length - until).toLocaleString("en")} that follow`, () => {
      more.remove();
      this.moreVersions(place, table, rows, until);
    }, "link");
    place.append(more);
  }
}
