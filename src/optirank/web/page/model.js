// A model as the page holds it, and the panel of it that serves the genes of some data.

import { checkCase, matchGenes, matchNotes, lackingGenes, nPresent, ofGenes } from "./match.js";
import { readTree, treeOfClasses } from "./tree.js";
import { expectedAccuracy } from "./vote.js";
import { costOf, leftOutNote, missingError, weightNote, whyOther } from "./words.js";

function numbers(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return Float64Array.from(new Kind(bytes.buffer));
}

/** Numbers of half precision. */
function halves(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return Float64Array.from(new Uint16Array(bytes.buffer), (half) => {
    const exponent = (half >> 10) & 31; // none is infinite: they are at most 1/2
    const digits = half & 1023;
    const size = exponent ? (1 + digits / 1024) * 2 ** (exponent - 15) : digits * 2 ** -24;
    return half & 0x8000 ? -size : size;
  });
}

function rows(flat, length) {
  const n = flat.length / length;
  return Array.from({ length: n }, (_, k) => flat.slice(k * length, (k + 1) * length));
}

/** The model of a page's data: names, numbers and panels by size. */
export function readModel(data) {
  const panels = new Map();
  for (const stored of data.panels) {
    const genes = stored.genes.map((place) => data.genes[place]);
    const likeness = stored.profiles !== null;
    panels.set(genes.length, {
      genes,
      nRows: data.n_rows,
      coef: numbers(stored.coef, Float64Array),
      profiles: likeness ? rows(numbers(stored.profiles, Float32Array), genes.length) : null,
      levels: likeness ? rows(numbers(stored.levels, Float32Array), 101) : null,
      calibration: stored.calibration,
      errorControl: stored.error_control,
      missing: stored.missing,
    });
  }
  let further = null;
  if (data.further) {
    const { genes, means } = data.further;
    further = { genes, means: rows(halves(means), genes.length) };
  }
  const tree = data.tree ? readTree(data.tree.parents, data.tree.levels) : null;
  const terms = data.terms ? { ids: new Map(data.terms.ids), version: data.terms.version } : null;
  return { ...data, panels, further, tree, terms };
}

/**
 * The model over the genes of some data: its panel that they serve best, with weights and
 * profiles of the genes that are there.
 *
 * `options` has dropClasses and homologs. An error says which classes cannot be told.
 */
export function bind(model, given, otherNames, options) {
  const whole = matchGenes(model.genes, given, otherNames);
  const size = bestSize(model, whole);
  let panel = model.panels.get(size);
  const match = ofGenes(whole, panel.genes);
  const there = panel.genes.map((_, k) => k).filter((k) => match.columns[k] >= 0);
  const lacking = lackingClasses(model, panel, there);
  let classes = model.classes;
  if (lacking.length || there.length < 2) {
    const error = missingError(model, panel, match, lacking);
    if (!(options.dropClasses && error.droppable)) throw error;
    classes = classes.filter((name) => !lacking.includes(name));
    panel = ofClasses(panel, model.classes, classes);
  }
  let tree = model.tree;
  if (tree !== null && lacking.length) tree = treeOfClasses(tree, classes);
  const own = model.panels.get(model.n_genes);
  const ownMissing = lackingGenes(ofGenes(whole, own.genes)).length;
  const bound = {
    classes,
    tree,
    labels: tree === null ? classes : tree.labels,
    size,
    match,
    columns: Int32Array.from(there, (k) => match.columns[k]),
    panel: narrowed(panel, there),
    shareMissing: 1 - there.length / panel.genes.length,
    weightMissing: lostWeight(panel, there),
    leftOut: lacking.length ? lacking : [],
    further: furtherOf(model, panel, given, there.map((k) => match.columns[k]), classes),
    trainedTarget: lacking.length ? null : (own.errorControl?.target_error ?? null),
    choice: size === model.n_genes ? "" : whyOther(size, nPresent(match), ownMissing, model.n_genes),
    whole: lacking.length ? NaN : expectedAccuracy(own, 0),
    without: lacking.length ? NaN : expectedAccuracy(panel, 1 - there.length / panel.genes.length),
  };
  if (options.homologs !== "case") checkCase(match);
  return bound;
}

/** The genes that check labels: columns of the data, and their mean ranks by class. */
function furtherOf(model, panel, given, columnsOfPanel, classes) {
  if (model.further === null) return null;
  const used = new Set(panel.genes);
  const taken = new Set(columnsOfPanel);
  const { columns } = matchGenes(model.further.genes, given);
  const kept = model.further.genes
    .map((_, k) => k)
    .filter((k) => columns[k] >= 0 && !used.has(model.further.genes[k]) && !taken.has(columns[k]));
  const means = classes.map((name) => model.further.means[model.classes.indexOf(name)]);
  return {
    columns: kept.map((k) => columns[k]),
    means: means.map((row) => Float64Array.from(kept, (k) => row[k])),
  };
}

/** The size of the panel that the genes of the data serve best, see `_best_size` of Python. */
function bestSize(model, match) {
  const present = new Map(match.genes.map((gene, k) => [gene, match.columns[k] >= 0]));
  const own = model.n_genes;
  const expected = new Map();
  for (const [size, panel] of model.panels) {
    const missing = panel.genes.filter((gene) => !present.get(gene)).length / size;
    if (size === own && missing === 0) return own;
    const accuracy = expectedAccuracy(panel, missing);
    if (Number.isFinite(accuracy)) expected.set(size, accuracy);
  }
  if (!expected.has(own)) return own;
  let best = null;
  for (const [size, accuracy] of expected) {
    const ahead = best === null || accuracy > expected.get(best);
    if (ahead || (accuracy === expected.get(best) && size < best)) best = size;
  }
  return expected.get(best) > expected.get(own) + model.standard_error ? best : own;
}

/** Classes without a vote of the genes that are there. */
function lackingClasses(model, panel, there) {
  const named = model.classes.slice(-panel.nRows);
  const size = panel.genes.length;
  return named.filter((_, row) => !there.some((k) => panel.coef[row * size + k] !== 0));
}

/** The weights of some of the classes; what was measured on all of them goes. */
function ofClasses(panel, all, classes) {
  const size = panel.genes.length;
  let kept = classes.map((name) => rows(panel.coef, size)[all.indexOf(name)]);
  if (kept.length === 2) kept = [kept[1].map((x, j) => x - kept[0][j])];
  return {
    ...panel,
    nRows: kept.length,
    coef: Float64Array.from(kept.flatMap((row) => Array.from(row))),
    profiles: null,
    levels: null,
    calibration: null,
    errorControl: null,
    missing: [],
  };
}

/** A panel with the genes alone that are there. */
function narrowed(panel, there) {
  const pick = (row) => Float64Array.from(there, (k) => row[k]);
  return {
    ...panel,
    present: there.map((k) => panel.genes[k]),
    coef: Float64Array.from(rows(panel.coef, panel.genes.length).flatMap((row) => Array.from(pick(row)))),
    profiles: panel.profiles && panel.profiles.map(pick),
  };
}

/** The share of a panel's weight that genes have which are missing. */
function lostWeight(panel, there) {
  const size = panel.genes.length;
  const byGene = new Float64Array(size);
  panel.coef.forEach((x, k) => (byGene[k % size] += Math.abs(x)));
  const sum = (numbers) => numbers.reduce((total, x) => total + x, 0);
  return 1 - sum(there.map((k) => byGene[k])) / Math.max(sum(byGene), Number.MIN_VALUE);
}

const LOST = 0.05; // of the held-out accuracy: more is said
const MUCH_WEIGHT = 0.4; // share of the panel's weight
const MORE_WEIGHT = 0.1; // beyond the share of its genes

/** Sentences about the genes, and classes that were left out. */
export function boundNotes(bound) {
  const notes = matchNotes(bound.match);
  if (bound.choice) notes.push(bound.choice);
  if (!boundAlarms(bound).length) {
    const { shareMissing, weightMissing } = bound;
    if (bound.whole - bound.without > LOST) {
      notes.push(`${costOf(bound.whole, bound.without)}: labels are less certain`);
    } else if (weightMissing >= MUCH_WEIGHT && weightMissing - shareMissing >= MORE_WEIGHT) {
      notes.push(weightNote(shareMissing, weightMissing));
    }
  }
  if (bound.leftOut.length) notes.unshift(leftOutNote(bound.leftOut));
  return notes;
}

/** Says that most of what the model knows is lost with the missing genes. */
export function boundAlarms(bound) {
  const guessing = 1 / bound.classes.length;
  if (!(bound.without - guessing < bound.whole - bound.without)) return [];
  return [`${costOf(bound.whole, bound.without)}: these labels are little more than guesses`];
}
