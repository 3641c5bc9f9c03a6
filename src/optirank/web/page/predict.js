// From a file to labels, as `optirank predict` makes them: reads, ranks, votes, withholds, warns.

import { agreementOf, everySoMany, judge, labelMeans } from "./agreement.js";
import { missingGenes, uniqueGenes } from "./genes.js";
import { bind, geneNotes } from "./model.js";
import { descend, labelOfWay } from "./tree.js";
import { standardised, valueNotes, valueScale, valueShares } from "./values.js";
import { best, byClass, centredRanks, correlation, median, probabilitiesOf, scoresOf } from "./votes.js";
import { checkOptions, withhold, withheldWord } from "./withhold.js";

const BLOCK = 4096; // samples that Python reads together: the first block tells the scale
const BLOCK_VALUES = 20_000_000;
const SCALE_SAMPLES = 200; // samples and genes that tell what kind of values data hold
const SCALE_GENES = 2000;

/**
 * The labels of a source, an object with name, genes, notes, nSamples, samples (their names) and
 * `read(parts, progress)`, see `readGenes`. `options` has threshold and targetError.
 */
export async function label(source, model, words, options, progress = () => {}) {
  checkOptions(options);
  if (!source.nSamples) throw new Error(`${source.name} holds no samples: there is nothing to label`);
  const unique = uniqueGenes(source.genes, await areCounts(source));
  const bound = bind(model, unique.names);
  const [values, further] = await readGenes(source, unique.columns, bound, words.trust, progress);
  refuseNoNumbers(source, values, bound);
  const query = score(values, source.nSamples, model, bound);
  const checked = check(query, further, bound, model, words.trust);
  const ways = model.tree && waysOf(query, model);
  const confidence = ways ? ways.map((way) => way.confidence) : Array.from(query.confidence, (x) => [x]);
  const decision = withhold(confidence, query.tied, model, options, words);
  const ofGenes = geneNotes(model, bound);
  const notes = [
    ...source.notes,
    ...unique.notes,
    ...ofGenes.notes,
    ...checked.notes,
    ...notesOfValues(source, values, bound, model, words),
    ...(model.calibration ? [] : [words.not_calibrated]),
    ...decision.notes,
  ];
  const alarms = [...ofGenes.alarms, ...checked.alarms];
  return {
    source: source.name,
    names: source.samples,
    classes: model.classes,
    all: model.tree?.labels ?? model.classes,
    tree: model.tree,
    terms: model.terms,
    ...labelsOf(query, ways, decision, model),
    probabilities: query.probabilities,
    likeness: query.likeness,
    codes: decision.codes,
    reasons: ["", words.no_information, words.low_confidence],
    notes,
    alarms,
    missing: missingGenes(bound.match),
    values,
    panel: bound.panel,
    record: recordOf(source, model, bound, checked, decision, [...alarms, ...notes], options),
  };
}

/** Whether genes share a name, and some of the values say that all are counts. */
async function areCounts(source) {
  const { genes, nSamples } = source;
  if (new Set(genes).size === genes.length) return false;
  const spread = (n, most) => {
    const step = Math.max(1, Math.floor(n / most));
    return Array.from({ length: Math.ceil(n / step) }, (_, k) => k * step);
  };
  const rows = spread(nSamples, SCALE_SAMPLES);
  const groups = spread(genes.length, SCALE_GENES).map((gene) => [gene]);
  const [values] = await source.read([{ groups, rows }], () => {});
  return valueScale(values, rows.length, groups.length) === "counts";
}

/**
 * Values of the panel's genes of all samples, and of the further genes of every so many-th.
 *
 * A part that is read has the groups of columns that are added up to one each, and the rows (null: all).
 */
function readGenes(source, columnsOfNames, bound, limits, progress) {
  const groups = (columns) => columns.map((column) => columnsOfNames[column]);
  const parts = [{ groups: groups(bound.columns), rows: null }];
  if (bound.further?.columns.length) {
    const every = everySoMany(source.nSamples, limits);
    const rows = Array.from({ length: Math.ceil(source.nSamples / every) }, (_, k) => k * every);
    parts.push({ groups: groups(bound.further.columns), rows });
  }
  return source.read(parts, progress);
}

/** How many samples are in a block of the pass over the file. */
function blockRows({ columns, further }) {
  const nGenes = Math.max(1, columns.length + (further?.columns.length ?? 0));
  return Math.min(BLOCK, Math.max(64, Math.floor(BLOCK_VALUES / nGenes)));
}

/** Refuse values that have no rank, as the pass over blocks does. */
function refuseNoNumbers(source, values, bound) {
  const nGenes = bound.columns.length;
  const size = blockRows(bound) * nGenes;
  for (let first = 0; first < values.length; first += size) {
    const block = values.subarray(first, first + size);
    const bad = block.reduce((n, x) => n + !Number.isFinite(x), 0);
    if (!bad) continue;
    const start = first / nGenes;
    throw new Error(
      `${source.name}, samples ${start + 1} to ${start + block.length / nGenes}: X has NaN or ` +
        `infinite values, which have no rank (${bad} in the genes needed): impute them or leave ` +
        "these samples out",
    );
  }
}

/** Classes, probabilities and likeness of all samples, and whether all their genes are tied. */
function score(values, nSamples, model, { columns, panel }) {
  const nClasses = model.classes.length;
  const query = {
    chosen: new Uint16Array(nSamples),
    tied: [],
    probabilities: new Float64Array(nSamples * nClasses),
    confidence: new Float64Array(nSamples),
    likeness: new Float64Array(nSamples).fill(NaN),
  };
  for (let i = 0; i < nSamples; i++) {
    const sample = values.subarray(i * columns.length, (i + 1) * columns.length);
    const centred = centredRanks(sample);
    const scores = scoresOf(centred, panel);
    const chosen = best(byClass(scores));
    const shares = probabilitiesOf(scores, model.calibration);
    query.chosen[i] = chosen;
    query.tied.push(sample.every((x) => x === sample[0]));
    query.probabilities.set(shares, i * nClasses);
    query.confidence[i] = shares[chosen];
    if (model.medians?.[chosen] > 0) query.likeness[i] = correlation(centred, panel.profiles[chosen]) / model.medians[chosen];
  }
  return query;
}

/** What the further genes and likeness say of the labels as a whole. */
function check(query, further, bound, model, limits) {
  const nSamples = query.chosen.length;
  let compared = null;
  if (bound.further !== null) {
    const nGenes = bound.further.columns.length;
    const every = everySoMany(nSamples, limits);
    const labels = nGenes ? query.chosen.filter((_, i) => i % every === 0) : [];
    const means = labelMeans(further, labels, model.classes.length, nGenes);
    compared = agreementOf(bound.further.means, means, limits);
  }
  const likeness = query.likeness.includes(NaN) ? null : median(query.likeness);
  const missing = missingGenes(bound.match).length / model.genes.length;
  return { ...judge({ compared, likeness, missing, nSamples }, model.classes, limits), likeness };
}

/** The ways of all samples down the tree. */
function waysOf({ chosen, probabilities }, { tree, classes }) {
  const n = classes.length;
  return Array.from(chosen, (_, i) => descend(tree, probabilities.subarray(i * n, (i + 1) * n), classes));
}

/** The labels given (positions), how sure they are, and the classes at the ends of the ways. */
function labelsOf(query, ways, { threshold }, { tree, classes }) {
  if (!ways) return { given: query.chosen, chosen: query.chosen, confidence: query.confidence, leafConfidence: null };
  const labels = ways.map((way) => labelOfWay(way, threshold ?? 0));
  return {
    given: Int32Array.from(labels, ({ label }) => label),
    confidence: Float64Array.from(labels, ({ confidence }) => confidence),
    chosen: Uint16Array.from(ways, (way) => classes.indexOf(tree.labels[way.path.at(-1)])),
    leafConfidence: Float64Array.from(ways, (way) => way.confidence.at(-1)),
  };
}

function notesOfValues(source, values, bound, model, words) {
  const nGenes = bound.columns.length;
  const shares = valueShares(values, Math.min(source.nSamples, blockRows(bound)), nGenes);
  const notes = valueNotes(shares, model.values, words);
  if (!standardised(values, source.nSamples, nGenes)) return notes;
  notes.push(words.standardised);
  if (source.hasRaw) notes.push("raw may have the values before: layer='raw' reads it");
  return notes;
}

/** How the labels were made, as the record beside a file of labels. */
function recordOf(source, model, bound, checked, decision, notes, options) {
  const asked = { threshold: options.threshold, target_error: options.targetError, ...source.options };
  const record = {
    model: model.name,
    model_sha256: model.digest,
    optirank_version: model.version,
    options: Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== null)),
    query: source.name,
    classes: model.classes,
    withheld_label: withheldWord(model.tree?.labels ?? model.classes),
    n_genes: model.genes.length,
    missing_genes: missingGenes(bound.match),
    agreement: checked.agreement,
    agreement_by_label: Object.fromEntries(storedNames(checked.byLabel)),
    likeness: checked.likeness,
    notes,
  };
  if (decision.threshold !== null) {
    record.threshold = decision.threshold;
    record.threshold_reason = decision.reason;
  }
  return record;
}

/** Pairs of labels and values, with names of the labels that every format stores (see `probability_columns`). */
function storedNames(pairs) {
  const names = [];
  for (const [label] of pairs) {
    let stem = label.replaceAll("/", "|").replaceAll("\0", "");
    if (["", ".", "..", "_index"].includes(stem)) stem = `class ${stem}`.trimEnd();
    let name = stem;
    for (let k = 2; names.includes(name); k++) name = `${stem} (${k})`;
    names.push(name);
  }
  return pairs.map(([, value], k) => [names[k], value]);
}
