// From a file to labels, as `optirank predict` makes them: reads, ranks, votes, withholds, warns.

import { agreementOf, everySoMany, labelMeans, looksInverted } from "./agreement.js";
import { queryChecksum } from "./digest.js";
import { bind, boundAlarms, boundNotes } from "./model.js";
import { lackingGenes, nPresent } from "./match.js";
import { inNamesOf, uniqueGenes } from "./names.js";
import { centredRanks, genesApart, standardised, valueScale, valueShares } from "./rank.js";
import { some } from "./text.js";
import { descend, levelLabels } from "./tree.js";
import { trustOf } from "./trust.js";
import { best, byClass, explain, likenessOf, probabilitiesOf, relativeLikeness, scoresOf, shiftOf } from "./vote.js";
import { checkOptions, withhold, withholdAll } from "./withhold.js";
import { valueNotes, withheldWord } from "./words.js";

const BLOCK = 4096; // samples that Python reads together: its errors name them
const BLOCK_VALUES = 20_000_000;
const LIKENESS_SAMPLES = 2000; // whose likeness tells the shift of a query
const SCALE_SAMPLES = 200; // samples and genes that tell what kind of values data hold
const SCALE_GENES = 2000;

/**
 * The labels of a source, an object with name, genes, others, rawGenes, notes, nSamples,
 * samples (names, or what gives them) and `read(columns, rows, progress)`.
 *
 * `columns` has the groups of columns that are added up to one each. `options` has threshold,
 * targetError, unknownRate, dropClasses and homologs.
 */
export async function label(source, model, tables, words, options, progress = () => {}) {
  checkOptions(options);
  if (options.levels && model.tree === null) {
    throw new Error(
      "levels=True: the model has no tree of labels, and no levels; leave it out, or train with a tree",
    );
  }
  if (!source.nSamples) throw new Error(`${source.name} holds no samples: there is nothing to label`);
  const renamed = inNamesOf(source, model.genes, model.further?.genes ?? [], tables, options.homologs);
  const areCounts = await looksLikeCounts(source, renamed.names);
  const unique = uniqueGenes(renamed.names, areCounts);
  const others = Object.fromEntries(
    Object.entries(source.others).map(([name, values]) => [name, unique.columns.map(([first]) => values[first])]),
  );
  const bound = bindTo(source, model, unique.names, others, options);
  const groups = (columns) => Array.from(columns, (column) => unique.columns[column]);
  const parts = [{ groups: groups(bound.columns), rows: null }];
  if (bound.further?.columns.length) {
    const every = everySoMany(source.nSamples, words.trust);
    const rows = Array.from({ length: Math.ceil(source.nSamples / every) }, (_, k) => k * every);
    parts.push({ groups: groups(bound.further.columns), rows });
  }
  const [values, further] = await source.read(parts, progress);
  const readerNotes = [...source.notes, ...renamed.notes, ...unique.notes];
  return labelValues(source, values, further, model, bound, readerNotes, words, options);
}

/** Whether genes share a name, and some of the values say that all are counts. */
async function looksLikeCounts(source, names) {
  if (new Set(names).size === names.length) return false;
  const spread = (n, most) => {
    const step = Math.max(1, Math.floor(n / most));
    return Array.from({ length: Math.ceil(n / step) }, (_, k) => k * step);
  };
  const genes = spread(names.length, SCALE_GENES);
  const rows = spread(source.nSamples, SCALE_SAMPLES);
  const [values] = await source.read([{ groups: genes.map((gene) => [gene]), rows }], () => {});
  return valueScale(values, rows.length, genes.length) === "counts";
}

/** The model over the file's genes; a table that lies the other way is said to. */
function bindTo(source, model, names, others, options) {
  try {
    return bind(model, names, others, options);
  } catch (error) {
    if (!source.genesIn || !error.match) throw error;
    const samples = new Set(source.samples);
    const inSamples = error.match.genes.filter((gene) => samples.has(gene));
    if (inSamples.length <= nPresent(error.match)) throw error;
    const opposite = source.genesIn === "columns" ? "rows" : "columns";
    throw new Error(
      `${source.name}: the genes of the model are in its ${opposite}, not in its ` +
        `${source.genesIn} (${some(inSamples, 3)}): use genes_in='${opposite}'`,
    );
  }
}

/**
 * Labels of values (samples by the panel's genes that are there) and all that is said of them.
 *
 * `further` has the values of the genes that check labels, of every so many-th sample.
 */
export function labelValues(source, values, further, model, bound, readerNotes, words, options) {
  const nGenes = bound.columns.length;
  const nSamples = source.nSamples;
  const blockRows = Math.min(BLOCK, Math.max(64, Math.floor(BLOCK_VALUES / Math.max(1, nGenes + (bound.further?.columns.length ?? 0)))));
  refuseNoNumbers(source, values, nGenes, blockRows);
  const query = score(values, nSamples, bound, options);
  const checked = check(query, further, bound, nSamples, words.trust);
  query.trust = checked.trust;
  query.alarms = [...boundAlarms(bound), ...query.trust.alarms];
  query.ways = bound.tree && waysOf(query, bound);
  const decision = withhold(query, bound, options, words);
  const levels = bound.tree && levelLabels(bound.tree, query.ways, bound.classes, decision.threshold ?? 0);
  const { alarms } = query;
  if (alarms.length && options.strict) withholdAll(decision);
  const shares = valueShares(values, nSamples, nGenes, blockRows);
  const missing = lackingGenes(bound.match);
  const notes = [...readerNotes, ...boundNotes(bound), ...rawNotes(source, missing)];
  const isScaled = standardised(values, nSamples, nGenes);
  if (checked.inverted && !isScaled) notes.push(words.trust.inverted);
  notes.push(...query.trust.notes);
  notes.push(...valueNotes(shares, model.values, words));
  if (isScaled) notes.push(words.standardised);
  if (isScaled && source.rawGenes?.length) notes.push("raw may have the values before: use_raw=True reads it");
  if (query.trust.adaptHelps) notes.push(words.adapt);
  notes.push(...decision.notes);
  if (bound.panel.calibration === null) notes.push(words.not_calibrated);
  const checksum = queryChecksum(bound.match.genes, source.samples, values, nGenes, words.generator);
  return {
    source: source.name,
    names: source.samples,
    classes: bound.classes,
    all: bound.labels,
    tree: bound.tree,
    terms: model.terms,
    given: levels?.given ?? query.chosen,
    leafConfidence: levels?.leafConfidence ?? null,
    byLevel: Boolean(options.levels),
    chosen: levels?.chosen ?? query.chosen,
    codes: decision.codes,
    reasons: decision.reasons,
    confidence: levels?.confidence ?? query.confidence,
    probabilities: query.probabilities,
    notes,
    alarms,
    missing,
    values,
    panel: bound.panel,
    record: record(source, model, bound, query, decision, [...alarms, ...notes], options, checksum),
  };
}

/** The ways of all samples down the tree. */
function waysOf(query, { tree, classes }) {
  const n = classes.length;
  return Array.from(query.chosen, (_, i) => descend(tree, query.probabilities.subarray(i * n, (i + 1) * n), classes));
}

/** What the further genes say of the labels as a whole. */
function check(query, further, bound, nSamples, words) {
  const { classes, panel } = bound;
  let compared = null;
  let inverted = false;
  if (bound.further !== null) {
    const nGenes = bound.further.columns.length;
    const every = everySoMany(nSamples, words);
    const labels = nGenes ? query.chosen.filter((_, i) => i % every === 0) : [];
    const means = labelMeans(further, labels, classes.length, nGenes);
    compared = agreementOf(bound.further.means, means, words);
    inverted = nGenes > 0 && looksInverted(bound.further.means, means, words);
  }
  const missing = 1 - nPresent(bound.match) / bound.match.genes.length;
  const likeness = panel.levels && relativeLikeness(query.likeness, query.labels, panel.levels);
  return { trust: trustOf({ compared, likeness, missing, nSamples }, classes, words), inverted };
}

/** Refuse values that have no rank, as the pass over blocks does. */
function refuseNoNumbers(source, values, nGenes, blockRows) {
  const size = blockRows * nGenes;
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

/** Scores, labels and likeness of all samples. */
function score(values, nSamples, bound, options) {
  const { panel, classes } = bound;
  const nGenes = bound.columns.length;
  const nClasses = classes.length;
  const chosen = new Uint16Array(nSamples);
  const apart = new Uint32Array(nSamples);
  const probabilities = new Float64Array(nSamples * nClasses);
  const confidence = new Float64Array(nSamples);
  const likeness = [];
  const labels = [];
  const every = options.unknownRate === null ? Math.ceil(nSamples / LIKENESS_SAMPLES) : 1;
  for (let i = 0; i < nSamples; i++) {
    const sample = values.subarray(i * nGenes, (i + 1) * nGenes);
    const centred = centredRanks(sample);
    const scores = scoresOf(centred, panel);
    chosen[i] = best(byClass(scores));
    apart[i] = genesApart(sample);
    const shares = probabilitiesOf(scores, panel.calibration);
    probabilities.set(shares, i * nClasses);
    confidence[i] = shares[chosen[i]];
    if (panel.profiles !== null && i % every === 0) {
      likeness.push(likenessOf(centred, chosen[i], panel.profiles));
      labels.push(chosen[i]);
    }
  }
  const shift = panel.levels === null ? 0 : shiftOf(likeness, labels, panel.levels);
  return { chosen, confidence, probabilities, genesApart: apart, likeness, labels, shift };
}

function rawNotes(source, missing) {
  if (source.rawGenes === null) return [];
  const inRaw = new Set(missing.filter((gene) => new Set(source.rawGenes).has(gene)));
  if (!inRaw.size) return [];
  return [`${inRaw.size} genes that are missing are in raw: use_raw=True reads it`];
}

/** How the labels were made, as the record beside a file of labels. */
function record(source, model, bound, query, decision, notes, options, checksum) {
  const given = {
    target_error: options.targetError,
    threshold: options.threshold,
    unknown_rate: options.unknownRate,
    drop_classes: options.dropClasses || null,
    strict: options.strict || null,
    levels: options.levels || null,
    homologs: options.homologs,
    ...source.options,
  };
  const made = {
    model: model.name,
    model_sha256: model.digest,
    optirank_version: model.version,
    options: Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null && value !== 0)),
    query: source.name,
    query_checksum: checksum,
    classes: bound.classes,
    withheld_label: withheldWord(bound.labels),
    n_genes: bound.match.genes.length,
    missing_genes: lackingGenes(bound.match),
    left_out_classes: bound.leftOut,
    agreement: query.trust.agreement,
    agreement_by_label: Object.fromEntries(storedNames([...query.trust.byLabel.keys()]).map((name, k) => [name, [...query.trust.byLabel.values()][k]])),
    likeness: query.trust.likeness,
    notes,
  };
  if (model.terms !== null) made.cell_ontology = model.terms.version;
  if (decision.threshold !== null) {
    made.threshold = decision.threshold;
    made.threshold_reason = decision.thresholdReason;
  }
  return made;
}

/** Names of labels that every format stores, see `probability_columns` of Python. */
function storedNames(labels) {
  const names = [];
  for (const label of labels) {
    let stem = label.replaceAll("/", "|").replaceAll("\0", "");
    if (["", ".", "..", "_index"].includes(stem)) stem = `class ${stem}`.trimEnd();
    let name = stem;
    for (let k = 2; names.includes(name); k++) name = `${stem} (${k})`;
    names.push(name);
  }
  return names;
}

/** Why a sample of some labels got its label, see `explain`. */
export function explainSample(labels, row) {
  const nGenes = labels.panel.present.length;
  const values = labels.values.subarray(row * nGenes, (row + 1) * nGenes);
  return explain(values, labels.panel, labels.classes);
}
