// An argument by cases, one case at a time: without scripts they stand one below the other.

/** Tabs over the cases of an argument. */
export class Cases {
  constructor(place) {
    this.cases = [...place.querySelectorAll(":scope > .case")];
    if (this.cases.length < 2) return;
    const list = document.createElement("div");
    list.className = "tabs";
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", "Cases of the argument");
    this.tabs = this.cases.map((panel, at) => this.buildTab(panel, at));
    list.append(...this.tabs);
    list.addEventListener("keydown", (event) => this.key(event));
    place.prepend(list);
    this.show(0);
  }

  buildTab(panel, at) {
    const title = panel.querySelector("h4");
    const tab = document.createElement("button");
    tab.type = "button";
    tab.textContent = title.textContent;
    tab.setAttribute("role", "tab");
    tab.addEventListener("click", () => this.show(at));
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-label", title.textContent);
    return tab;
  }

  show(shown) {
    this.shown = shown;
    this.cases.forEach((panel, at) => panel.classList.toggle("away", at !== shown));
    this.tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", String(at === shown));
      tab.tabIndex = at === shown ? 0 : -1;
    });
  }

  key(event) {
    const last = this.cases.length - 1;
    const next = {
      ArrowLeft: Math.max(0, this.shown - 1),
      ArrowRight: Math.min(last, this.shown + 1),
      Home: 0,
      End: last,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.show(next);
    this.tabs[next].focus();
  }
}
