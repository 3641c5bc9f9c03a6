// The table of labels: sorted, searched, and drawn only where it is looked at.

import { labelOf } from "./csv.js";
import { element } from "./dom.js";
import { fixed, thousands } from "./text.js";

const AROUND = 15; // rows that are drawn above and below those in sight
const PRINTED = 5000; // rows that are printed at most
const COLUMNS = [
  ["sample", true],
  ["label", true],
  ["confidence", false],
  ["withheld because", true],
];

/** The grid of some labels; `open` is called with the position of a sample. */
export class Grid {
  #labels;
  #open;
  #order;
  #sorted = { column: -1, up: true };
  #query = "";
  #rowHeight = 36;
  #selected = 0;

  constructor(labels, open) {
    this.#labels = labels;
    this.#open = open;
    this.#build();
    this.#arrange();
    addEventListener("beforeprint", () => this.#draw(true));
    addEventListener("afterprint", () => this.#draw());
  }

  #build() {
    const search = element("input", { type: "search", id: "search", autocomplete: "off" });
    search.addEventListener("input", () => this.find(search.value));
    this.search = search;
    this.status = element("span", { class: "note", role: "status" });
    this.body = element("tbody");
    this.heads = COLUMNS.map(([name, isText], column) =>
      element(
        "th",
        { scope: "col", class: isText ? "text" : "", "aria-sort": "none" },
        element("button", { type: "button", onclick: () => this.#sort(column) }, name),
      ),
    );
    this.table = element(
      "table",
      {
        role: "grid",
        tabindex: "0",
        "aria-label": "Labels of all samples; arrow keys choose one, Enter opens it",
        "aria-colcount": COLUMNS.length,
      },
      element("thead", {}, element("tr", { "aria-rowindex": 1 }, this.heads)),
      this.body,
    );
    this.box = element("div", { class: "grid" }, this.table);
    this.box.addEventListener("scroll", () => this.#draw());
    this.table.addEventListener("keydown", (event) => this.#key(event));
    this.root = element(
      "div",
      {},
      element("div", { class: "row search" }, element("label", { for: "search" }, "Find a sample or a label"), search, this.status),
      this.box,
    );
  }

  /** Show the samples alone whose name or label has this text. */
  find(text) {
    this.#query = text.trim().toLowerCase();
    this.search.value = text;
    this.#arrange();
  }

  #sort(column) {
    const up = this.#sorted.column === column ? !this.#sorted.up : column !== 2;
    this.#sorted = { column, up };
    this.heads.forEach((head, k) =>
      head.setAttribute("aria-sort", k !== column ? "none" : up ? "ascending" : "descending"),
    );
    this.#arrange();
  }

  /** The samples that are shown, in order. */
  #arrange() {
    const { names, reasons, codes, confidence } = this.#labels;
    const label = (i) => labelOf(this.#labels, i);
    const has = (text) => text.toLowerCase().includes(this.#query);
    let order = Array.from(names.keys());
    if (this.#query) order = order.filter((i) => has(names[i]) || has(label(i)));
    const { column, up } = this.#sorted;
    if (column >= 0) {
      const keys = [(i) => names[i], label, (i) => confidence[i], (i) => reasons[codes[i]]][column];
      const compare =
        column === 2 ? (a, b) => keys(a) - keys(b) : (a, b) => TEXTS.compare(keys(a), keys(b));
      order.sort((a, b) => (up ? compare(a, b) : compare(b, a)) || a - b);
    }
    this.#order = order;
    this.#selected = 0;
    this.table.setAttribute("aria-rowcount", order.length + 1);
    const all = names.length;
    this.status.textContent =
      order.length === all ? `${thousands(all)} samples` : `${thousands(order.length)} of ${thousands(all)} samples`;
    this.box.scrollTop = 0;
    this.#draw();
  }

  /** Draw the rows in sight, with space for the others. */
  #draw(forPrint = false) {
    const height = this.#rowHeight;
    const n = this.#order.length;
    let first = Math.max(0, Math.floor(this.box.scrollTop / height) - AROUND);
    let last = Math.min(n, Math.ceil((this.box.scrollTop + this.box.clientHeight) / height) + AROUND);
    if (forPrint) [first, last] = [0, Math.min(n, PRINTED)];
    const space = (rows) => {
      const cell = element("td", { colspan: COLUMNS.length });
      cell.style.height = `${rows * height}px`;
      return element("tr", { class: "space", "aria-hidden": "true" }, cell);
    };
    const rows = [];
    if (first > 0) rows.push(space(first));
    for (let k = first; k < last; k++) rows.push(this.#row(k));
    if (last < n && !forPrint) rows.push(space(n - last));
    this.body.replaceChildren(...rows);
    this.table.setAttribute("aria-activedescendant", `row-${this.#selected}`);
    if (forPrint && last < n) {
      this.body.append(element("tr", {}, element("td", { colspan: COLUMNS.length }, `and ${thousands(n - last)} more samples`)));
    }
    const drawn = this.body.querySelector("tr:not(.space)");
    if (drawn && drawn.offsetHeight && !forPrint) this.#rowHeight = drawn.getBoundingClientRect().height;
  }

  #row(k) {
    const i = this.#order[k];
    const { names, reasons, codes, confidence } = this.#labels;
    const withheld = codes[i] > 0;
    return element(
      "tr",
      { id: `row-${k}`, "aria-rowindex": k + 2, "aria-selected": k === this.#selected, onclick: () => this.#choose(k, true) },
      element("th", { scope: "row", class: "text", title: names[i] }, names[i]),
      element("td", { class: withheld ? "text withheld" : "text" }, labelOf(this.#labels, i)),
      element("td", {}, fixed(confidence[i], 3)),
      element("td", { class: "text", title: reasons[codes[i]] }, reasons[codes[i]]),
    );
  }

  #choose(k, open) {
    if (!this.#order.length) return;
    this.#selected = Math.min(Math.max(k, 0), this.#order.length - 1);
    const top = this.#selected * this.#rowHeight;
    const head = this.table.tHead.offsetHeight;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + this.#rowHeight + head > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = top + this.#rowHeight + head - this.box.clientHeight;
    }
    this.#draw();
    if (open) this.#open(this.#order[this.#selected]);
  }

  #key(event) {
    if (event.target !== this.table) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.#rowHeight) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter") this.#choose(this.#selected, true);
    else if (event.key in steps) this.#choose(this.#selected + steps[event.key], false);
    else return;
    event.preventDefault();
  }
}

const TEXTS = new Intl.Collator("en", { numeric: true });
