// The table of samples: sorted, searched, and drawn only where it is looked at.

import { labelOf } from "./csv.js";
import { button, element } from "./dom.js";
import { fixed, thousands } from "./text.js";

const AROUND = 15; // rows that are drawn above and below those in sight
const PRINTED = 5000; // rows that are printed at most
const TEXTS = new Intl.Collator("en", { numeric: true });

/** The columns that some labels have: a heading, the text or number of a sample, and of which kind it is. */
function columnsOf(labels) {
  const columns = [
    { name: "sample", of: (i) => labels.names[i], kind: "text" },
    { name: "label", of: (i) => labelOf(labels, i), kind: "text" },
    { name: "confidence", of: (i) => labels.confidence[i], kind: "number" },
    { name: "likeness", of: (i) => labels.likeness[i], kind: "number likeness" },
  ];
  if (labels.codes.some((code) => code)) {
    columns.push({ name: "withheld because", of: (i) => labels.reasons[labels.codes[i]], kind: "text why" });
  }
  return columns;
}

/** The grid of some labels; `open` is called with the position of a sample. */
export class Grid {
  #labels;
  #open;
  #columns;
  #order = [];
  #sorted = { column: null, up: true };
  #query = "";
  #rowHeight = 36;
  #selected = 0;

  constructor(labels, open) {
    this.#labels = labels;
    this.#open = open;
    this.#columns = columnsOf(labels);
    this.#build();
    this.#arrange();
    addEventListener("beforeprint", () => this.#draw(true));
    addEventListener("afterprint", () => this.#draw());
  }

  #build() {
    this.search = element("input", { type: "search", id: "search", autocomplete: "off", oninput: () => this.find(this.search.value) });
    this.status = element("span", { class: "note", role: "status" });
    this.body = element("tbody");
    this.heads = this.#columns.map((column) =>
      element("th", { class: column.kind, "aria-sort": "none" }, button(column.name, () => this.#sort(column))),
    );
    const name = "Labels of all samples; arrow keys choose one, Enter opens it";
    this.table = element(
      "table",
      { role: "grid", tabindex: "0", "aria-label": name, onkeydown: (event) => this.#key(event) },
      element("thead", {}, element("tr", { "aria-rowindex": 1 }, this.heads)),
      this.body,
    );
    this.box = element("div", { class: "grid", onscroll: () => this.#draw() }, this.table);
    const find = element("label", { for: "search" }, "Find a sample or a label");
    this.root = element("div", {}, element("div", { class: "row search" }, find, this.search, this.status), this.box);
  }

  /** Show the samples alone whose name or label has this text. */
  find(text) {
    this.#query = text.trim().toLowerCase();
    this.search.value = text;
    this.#arrange();
  }

  #sort(column) {
    const up = this.#sorted.column === column ? !this.#sorted.up : column.kind.startsWith("text");
    this.#sorted = { column, up };
    const state = up ? "ascending" : "descending";
    this.heads.forEach((head, k) => head.setAttribute("aria-sort", this.#columns[k] === column ? state : "none"));
    this.#arrange();
  }

  /** The samples that are shown, in order. */
  #arrange() {
    const { names } = this.#labels;
    const has = (text) => text.toLowerCase().includes(this.#query);
    const order = Array.from(names.keys()).filter((i) => has(names[i]) || has(labelOf(this.#labels, i)));
    const { column, up } = this.#sorted;
    if (column) {
      const compare =
        column.kind.startsWith("text")
          ? (a, b) => TEXTS.compare(column.of(a), column.of(b))
          : (a, b) => column.of(a) - column.of(b);
      order.sort((a, b) => (up ? compare(a, b) : compare(b, a)) || a - b);
    }
    this.#order = order;
    this.#selected = 0;
    this.table.setAttribute("aria-rowcount", order.length + 1);
    const all = thousands(names.length);
    this.status.textContent = order.length === names.length ? `${all} samples` : `${thousands(order.length)} of ${all} samples`;
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
    const filler = (text, rows) => {
      const row = element("tr", { class: "space" }, element("td", {}, text));
      row.style.height = `${rows * height}px`;
      return row;
    };
    const rows = [];
    if (first > 0) rows.push(filler("", first));
    for (let k = first; k < last; k++) rows.push(this.#row(k));
    if (last < n) rows.push(forPrint ? filler(`and ${thousands(n - last)} more samples`, 1) : filler("", n - last));
    this.body.replaceChildren(...rows);
    this.table.setAttribute("aria-activedescendant", `row-${this.#selected}`);
    const drawn = this.body.querySelector("tr:not(.space)");
    if (drawn?.offsetHeight && !forPrint) this.#rowHeight = drawn.getBoundingClientRect().height;
  }

  #row(k) {
    const i = this.#order[k];
    const withheld = this.#labels.codes[i] > 0;
    const cells = this.#columns.map(({ name, of, kind }) => {
      const text = kind.startsWith("text") ? of(i) : fixed(of(i), 3);
      const style = withheld && name === "label" ? `${kind} withheld` : kind;
      return element("td", { class: style, title: text }, text);
    });
    const about = { id: `row-${k}`, "aria-rowindex": k + 2, "aria-selected": k === this.#selected };
    return element("tr", { ...about, onclick: () => this.#choose(k, true) }, cells);
  }

  #choose(k, open) {
    if (!this.#order.length) return;
    this.#selected = Math.min(Math.max(k, 0), this.#order.length - 1);
    const top = this.#selected * this.#rowHeight;
    const below = top + this.#rowHeight + this.table.tHead.offsetHeight - this.box.clientHeight;
    this.box.scrollTop = Math.max(Math.min(this.box.scrollTop, top), below);
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
