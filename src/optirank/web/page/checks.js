// What can be wrong with the values of a table: gaps and numbers that stand for them, clinical columns.

import { median, scaleOfColumns, valueScale } from "./rank.js";
import { general, quoted, some } from "./text.js";

// Numbers that stand for missing values; no expression value is as low as -99
const CODES = [-9, -99, -999, -9999, -99999];
// Words of clinical columns; no gene has such a symbol
const CLINICAL =
  /(?:^|[^\p{L}\p{N}])(?:age|ihc|percent|pct|bmi|weight|height|size|score|stage|grade|status|survival|time|event|months|days|years|dose)(?:[^\p{L}\p{N}]|$)|%/iu;
const MANY = 20; // genes that tell what is usual; clinical columns are fewer
const FEWEST_SAMPLES = 5; // of fewer, whole numbers among logarithms are often chance
const FACTOR = 3; // logarithms of genes lie closer together
const HIGHEST_MEDIAN = 20; // of logarithms: the log2 of a million
const FEWEST_CYCLES = 5; // no gene is detected earlier by qPCR

/** The checks of the values of a table; `isComplete`: genes with missing values were left out. */
export class Checks {
  #table;
  #withCode;
  #lowest = 0;
  #second = 0; // the lowest of the others
  #fractions = false;

  constructor(table, isComplete) {
    this.#table = table;
    this.#withCode = !isComplete && !table.options.anyScale;
  }

  /** Look at a value that was parsed. */
  see(x) {
    if (!Number.isFinite(x)) return;
    if (x < this.#lowest) {
      this.#second = this.#lowest;
      this.#lowest = x;
    } else if (x < this.#second && x > this.#lowest) this.#second = x;
    if (x % 1) this.#fractions = true;
  }

  /** Whether a value could stand for a missing one. */
  isCode(x) {
    return x === -1 || CODES.includes(x);
  }

  /** The number that stands for missing values; null where none does. */
  code() {
    const [code, lowest] = [this.#lowest, this.#second];
    if (!this.#withCode || code >= 0) return null;
    if (CODES.includes(code) && (lowest >= 0 || (code <= -99 && lowest > code / 3))) return code;
    return code === -1 && lowest >= 0 && !this.#fractions ? code : null;
  }

  /** Make missing what stands for a missing value. */
  mark(values) {
    const code = this.code();
    if (code !== null) for (let k = 0; k < values.length; k++) if (values[k] === code) values[k] = NaN;
  }

  /** Refuse missing values of genes (positions), and genes that look like clinical columns. */
  refuse(values, genes) {
    this.#refuseMissing(values, genes);
    if (!this.#table.options.anyScale && values.length) this.#refuseClinical(values, genes);
  }

  #refuseMissing(values, genes) {
    const n = genes.length;
    const missing = new Map();
    const samples = new Set();
    values.forEach((x, at) => {
      if (Number.isFinite(x)) return;
      missing.set(at % n, (missing.get(at % n) ?? 0) + 1);
      samples.add(Math.floor(at / n));
    });
    if (!missing.size) return;
    const { file, genes: names, samples: sampleNames } = this.#table;
    const columns = [...missing.keys()].sort((a, b) => genes[a] - genes[b]);
    const named = columns.map((k) => `${names[genes[k]]} (${missing.get(k)})`);
    const code = this.code();
    const coded = code === null ? "" : ` (${general(code)} stands for a missing one)`;
    throw new Error(
      `${file.name}: ${named.length} of ${n} genes ${named.length === 1 ? "has" : "have"} missing or ` +
        `infinite values${coded}, in ${samples.size} of ${sampleNames.length} samples (first ` +
        `${quoted(sampleNames[Math.min(...samples)])}): ${some(named, 20)}; fill them in, or leave ` +
        "these genes out (drop_missing=True)" +
        (code === null ? "" : "; if it is a value, say so (any_scale=True)"),
    );
  }

  #refuseClinical(values, genes) {
    const { file, genes: names, samples, known, genesIn } = this.#table;
    if (samples.length < FEWEST_SAMPLES) return;
    const spared = new Set(known.map((name) => name.toLowerCase()));
    const unlike = unlikeTheOthers(values, samples.length, genes.length);
    const odd = genes
      .filter((gene, k) => CLINICAL.test(names[gene]) || unlike.has(k))
      .map((gene) => names[gene])
      .filter((name) => !spared.has(name.toLowerCase()));
    if (!odd.length) return;
    const first = odd.slice(0, 3);
    const list = `[${first.map(quoted).join(", ")}]`;
    const inColumns = genesIn === "columns";
    const remedy = inColumns
      ? `name them as annotations (annotations=${list})`
      : "remove these lines";
    throw new Error(
      `${file.name}: the ${inColumns ? "columns" : "lines"} ${some(odd)} look like clinical data among ` +
        `the genes (by their name, or by values unlike those of the others): ${remedy}; if they are ` +
        "genes, say so (any_scale=True)",
    );
  }

  /** Says that values may be Ct of qPCR: 5 to 50, mostly above any logarithm. */
  warningsOf(values, nGenes) {
    const { file, options } = this.#table;
    if (options.invert || options.anyScale || !values.length) return [];
    if (values.some((x) => x < FEWEST_CYCLES)) return [];
    if (valueScale(values, values.length / nGenes, nGenes) !== "log" || !(median(values) > HIGHEST_MEDIAN)) {
      return [];
    }
    return [
      `${file.name}: half of the values are above 20 and none above 50, as those of Ct (qPCR), of ` +
        "which less is more: labels would be reversed; if they are, say so (invert=)",
    ];
  }
}

/** Positions of a few columns that are on another scale than logarithms around them. */
function unlikeTheOthers(values, nSamples, nGenes) {
  const none = new Set();
  if (nGenes < MANY) return none;
  const columnOf = (k) => Float64Array.from({ length: nSamples }, (_, i) => Math.abs(values[i * nGenes + k]));
  const largest = new Float64Array(nGenes);
  values.forEach((x, at) => (largest[at % nGenes] = Math.max(largest[at % nGenes], Math.abs(x))));
  const limit = quantileOf(largest, 0.8);
  const usual = Array.from(largest.keys()).filter((k) => largest[k] <= limit);
  if (scaleOfColumns(values, nSamples, nGenes, usual) !== "log") return none;
  const middle = Float64Array.from(largest, (_, k) => median(columnOf(k)));
  const top = usual.reduce((most, k) => Math.max(most, middle[k]), 1);
  const unlike = Array.from(largest.keys()).filter((k) => {
    if (middle[k] > Math.max(FACTOR * top, HIGHEST_MEDIAN)) return true;
    return middle[k] > top && columnOf(k).every(Number.isInteger);
  });
  return unlike.length > MANY ? none : new Set(unlike); // so many are genes on a linear scale
}

/** A quantile, linear between the two nearest numbers. */
function quantileOf(numbers, share) {
  const ordered = Float64Array.from(numbers).sort();
  const at = share * (ordered.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, ordered.length - 1);
  return ordered[below] + (at - below) * (ordered[above] - ordered[below]);
}
