// The file of labels, as `optirank predict` writes it.

import { fixed } from "./text.js";
import { ID_COLUMN, atLevels, levelColumns, termOf } from "./tree.js";
import { withheldWord } from "./words.js";

const DIGITS = 4; // of confidences and probabilities: more is noise
const FORMULA = /^[=+\-@\t\r]/; // with these a spreadsheet starts a formula

/** A field in quotes where it has to be. */
const field = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** A share with four digits; a tie goes to the even one. */
function fourDigits(x) {
  const scaled = x * 10 ** DIGITS;
  let whole = Math.round(scaled);
  if (whole - scaled === 0.5 && whole % 2) whole--;
  return fixed(whole / 10 ** DIGITS, DIGITS);
}

/** The label of a sample, or the word for one that is withheld. */
export const labelOf = (labels, i) =>
  labels.codes[i] ? withheldWord(labels.all) : labels.all[labels.given[i]];

/** Columns of a tree and of the Cell Ontology, of a model that has them. */
function treeColumns(labels) {
  const ofTree = labels.tree ? ["leaf", "leaf_confidence", ...(labels.byLevel ? levelColumns(labels.tree) : [])] : [];
  return [...ofTree, ...(labels.terms ? [ID_COLUMN] : [])];
}

function treeCells(labels, i) {
  const cells = [];
  if (labels.tree) {
    cells.push(labels.classes[labels.chosen[i]], fourDigits(labels.leafConfidence[i]));
    const given = labels.codes[i] ? -1 : labels.given[i];
    if (labels.byLevel) cells.push(...atLevels(labels.tree, given, withheldWord(labels.all)));
  }
  if (labels.terms) cells.push(termOf(labels.terms, labelOf(labels, i)));
  return cells;
}

/** The table of labels as text, in parts; `spreadsheet` puts an apostrophe before formulas. */
export function labelsCsv(labels, spreadsheet = false) {
  const plain = (text) => field(spreadsheet && FORMULA.test(text) ? `'${text}` : text);
  const probabilities = labels.classes.map((name) => `probability_${name}`);
  const header = ["sample", "label", "confidence", ...probabilities, "withheld_because"];
  if (labels.alarms.length) header.push("alarm");
  header.push(...treeColumns(labels));
  const alarm = plain(labels.alarms.join("; "));
  const parts = [`${header.map(plain).join(",")}\n`];
  const n = labels.classes.length;
  labels.names.forEach((name, i) => {
    const cells = [plain(name), plain(labelOf(labels, i)), fourDigits(labels.confidence[i])];
    for (let c = 0; c < n; c++) cells.push(fourDigits(labels.probabilities[i * n + c]));
    cells.push(plain(labels.reasons[labels.codes[i]]));
    if (labels.alarms.length) cells.push(alarm);
    cells.push(...treeCells(labels, i).map(plain));
    parts.push(`${cells.join(",")}\n`);
  });
  return parts;
}
