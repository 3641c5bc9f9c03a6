// The model's card: what it is for, what it was trained on, how good it is.

import { element, facts, plainTable } from "./dom.js";

const TEXTS_OF_CARD = ["class", "data", "platform", "how", "worst class"];

/** Fill the section of the model. */
export function showCard(section, model, licence) {
  const lines = [...model.card, ["model file", `SHA-256 ${model.digest}`]];
  const tables = Object.entries(model.tables).map(([title, columns]) => {
    const names = Object.keys(columns);
    const rows = columns[names[0]].map((_, k) => names.map((name) => columns[name][k]));
    const heads = names.map((name) => [name, TEXTS_OF_CARD.includes(name)]);
    return element("details", {}, element("summary", {}, title), plainTable(title, heads, rows));
  });
  const genes = model.genes.slice(0, model.n_genes);
  section.replaceChildren(
    element("h2", {}, "The model"),
    facts(lines),
    ...tables,
    element("details", {}, element("summary", {}, `The panel's ${genes.length} genes`), element("p", {}, genes.join(", "))),
    ...(licence
      ? [element("details", {}, element("summary", {}, "Licence of the reader of .h5ad (h5wasm, by NIST)"), element("pre", {}, licence))]
      : []),
  );
}
