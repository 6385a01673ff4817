// Transactions and keys are the same ones wherever they are named: in words, tables, graphs and
// timelines. Pointing at one shows all of them; a click shows what it did; each has an address:
// `#t17` is a transaction, `#k3` a key, by their numbers in the history; where a page has several
// histories, `#h2-t17` is one of the second.

export class Links {
  constructor(part, history, details) {
    this.part = part;
    this.prefix = part.dataset.part;
    this.history = history;
    this.details = details;
    this.bands = history.bands;
    this.timelines = [];
    this.lit = [];
    details.links = this;
    part.addEventListener("pointerover", (event) => this.over(event.target));
    part.addEventListener("focusin", (event) => this.over(event.target));
    part.addEventListener("click", (event) => this.click(event));
    part.addEventListener("opentransaction", ({ detail }) => {
      const txn = history.at(Number(detail.dataset.t));
      if (txn !== null) this.open({ txn }, detail, detail.getBoundingClientRect());
    });
    window.addEventListener("hashchange", () => this.follow());
  }

  addTimeline(timeline) {
    this.timelines.push(timeline);
  }

  over(target) {
    if (target.tagName === "CANVAS") return;
    const named = target.closest?.("[data-t]");
    this.hover(named ? this.history.at(Number(named.dataset.t)) : null);
  }

  /** A transaction is pointed at: everything that stands for it is shown. */
  hover(txn) {
    if (txn === this.hovered) return;
    this.hovered = txn;
    this.lit.forEach((element) => element.classList.remove("lit"));
    this.lit = txn === null ? [] : [...this.part.querySelectorAll(`[data-t="${this.history.idOf(txn)}"]`)];
    this.lit.forEach((element) => element.classList.add("lit"));
    this.timelines.forEach((timeline) => timeline.hover(txn));
  }

  click(event) {
    const link = event.target.closest?.("a[data-t], a[data-k]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const what = this.meant(link.getAttribute("href"));
    if (!what) return;
    event.preventDefault();
    this.open(what, link, link.getBoundingClientRect());
  }

  /** What an address stands for. */
  meant(address) {
    const [, kind, number] = new RegExp(`^#${this.prefix}(t|k)(\\d+)$`).exec(address) ?? [];
    if (kind === "t") {
      const txn = this.history.at(Number(number));
      return txn === null ? null : { txn };
    }
    const key = this.history.keyIds.indexOf(Number(number));
    return kind === "k" && key >= 0 ? { key } : null;
  }

  address({ txn, key }) {
    const name = txn === undefined ? `k${this.history.keyIds[key]}` : `t${this.history.idOf(txn)}`;
    return `#${this.prefix}${name}`;
  }

  /** Shows a transaction or key beside what was clicked. */
  open(what, opener, rect) {
    window.history.replaceState(null, "", this.address(what));
    this.details.show(what, opener, rect);
  }

  /** Goes where the address of the page points. */
  follow() {
    const what = this.meant(window.location.hash);
    if (!what) return;
    const whole = this.timelines[0];
    whole.scroller.scrollIntoView({ block: "center" });
    if (what.txn !== undefined) whole.reveal(what.txn);
    const rect = what.txn === undefined ? whole.scroller.getBoundingClientRect() : whole.rect(what.txn);
    this.details.show(what, whole.canvas, rect);
  }

  /** A word that leads to a transaction or key. */
  link(what, text) {
    const link = document.createElement("a");
    const { txn, key } = what;
    link.href = this.address(what);
    if (txn !== undefined) link.dataset.t = this.history.idOf(txn);
    else link.dataset.k = this.history.keyIds[key];
    link.className = txn === undefined ? "key" : "txn";
    const name = document.createElement("bdi");
    name.textContent = text ?? (txn === undefined ? this.history.keys[key] : this.history.names[txn]);
    link.append(name);
    return link;
  }

  /** Which anomaly a timeline shows. */
  describe(place, { number, kind }, at, count) {
    const link = document.createElement("a");
    link.href = `#${this.prefix}a${number}`;
    link.textContent = `anomaly ${number}`;
    place.replaceChildren(`${at + 1} of ${count} in time: `, link, `, ${kind.toLowerCase()}`);
  }
}
