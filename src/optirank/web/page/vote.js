// Scores, labels, probabilities and likeness of samples, from the ranks of the panel's genes.

import { between, centredRanks, median } from "./rank.js";

/**
 * A panel as it serves some data: `coef` has one row per score over the genes that are there,
 * `calibration` and `likeness` may be null.
 */
export function scoresOf(centred, panel) {
  const n = centred.length;
  const scores = new Float64Array(panel.nRows);
  for (let k = 0; k < panel.nRows; k++) {
    let sum = 0;
    for (let j = 0; j < n; j++) sum += centred[j] * panel.coef[k * n + j];
    scores[k] = sum;
  }
  return scores;
}

/** One score per class: minus and plus the one score of two classes. */
export const byClass = (scores) =>
  scores.length === 1 ? Float64Array.of(-scores[0], scores[0]) : scores;

/** The position of the highest number, the first of equal ones. */
export function best(numbers) {
  let at = 0;
  for (let k = 1; k < numbers.length; k++) if (numbers[k] > numbers[at]) at = k;
  return at;
}

/** Probabilities of the classes: g(z_k) / sum g(z_m), with g the calibration's function. */
export function probabilitiesOf(scores, calibration) {
  const z = byClass(scores);
  const slope = calibration?.slope ?? 1;
  const offset = calibration?.offset ?? (scores.length > 1 ? -Infinity : 0);
  const logs = z.map((score) => {
    if (offset === -Infinity) return slope * score;
    const u = slope * score + offset;
    return -(Math.max(0, -u) + Math.log1p(Math.exp(-Math.abs(u))));
  });
  const top = Math.max(...logs);
  const each = logs.map((log) => Math.exp(log - (Number.isFinite(top) ? top : 0)));
  const total = each.reduce((sum, x) => sum + x, 0);
  return each.map((x) => (total > 0 ? x / total : 1 / each.length));
}

/** The correlation of two rows; 0 where one is constant. */
export function correlation(a, b) {
  const mean = (row) => row.reduce((sum, x) => sum + x, 0) / row.length;
  const [meanA, meanB] = [mean(a), mean(b)];
  let product = 0;
  let squareA = 0;
  let squareB = 0;
  for (let j = 0; j < a.length; j++) {
    const [x, y] = [a[j] - meanA, b[j] - meanB];
    product += x * y;
    squareA += x * x;
    squareB += y * y;
  }
  const size = Math.sqrt(squareA * squareB);
  return size > 0 ? product / size : 0;
}

/** How much a sample looks like the class it is given: the correlation with its mean ranks. */
export function likenessOf(centred, label, profiles) {
  return correlation(centred, profiles[label]);
}

const MAX_SHIFT = 0.2;
const TYPICAL_SHIFT = 0.1;
const PRIOR_SAMPLES = 20;

/** How much of a query's shift is put down to its platform. */
export function forgivenShift(shift, nSamples) {
  const weighted = nSamples * Math.max(0, shift) + PRIOR_SAMPLES * TYPICAL_SHIFT;
  return Math.min(MAX_SHIFT, weighted / (nSamples + PRIOR_SAMPLES));
}

/** A quantile of the held-out likeness of each class. */
export function quantiles(levels, at) {
  const shares = levels[0].map((_, k) => k / (levels[0].length - 1));
  return levels.map((row) => between(at, Array.from(shares), row));
}

/** By how much likeness falls short of that of held-out samples, in the median. */
export function shiftOf(likeness, labels, levels) {
  if (!likeness.length) return 0;
  const middle = quantiles(levels, 0.5);
  return median(likeness.map((score, i) => middle[labels[i]] - score));
}

/** The median likeness, as a share of that of held-out samples of the same labels; null: unknown. */
export function relativeLikeness(likeness, labels, levels) {
  if (!likeness.length) return null;
  const middle = quantiles(levels, 0.5);
  const own = median(labels.map((label) => middle[label]));
  return own > 0 ? median(likeness) / own : null;
}

/** Held-out accuracy of a panel with such a share of its genes missing; NaN if not measured. */
export function expectedAccuracy(panel, shareMissing) {
  if (!panel.missing.length) return NaN;
  const size = panel.genes.length;
  const log = (missing) => Math.log(Math.max(1, size * (1 - missing)));
  const rising = panel.missing.slice().reverse();
  const guessing = 1 / Math.max(2, panel.nRows);
  return between(
    log(shareMissing),
    [0, ...rising.map(([missing]) => log(missing))],
    [guessing, ...rising.map(([, accuracy]) => accuracy)],
  );
}

const PAIRS = 10; // that decide most are shown

/** Why one sample got its label: what genes contribute to each class, and deciding pairs. */
export function explain(values, panel, classes) {
  const centred = centredRanks(values);
  const scores = byClass(scoresOf(centred, panel));
  const of = classes.map((_, c) => {
    const weights = weightsOf(panel, c);
    return { ...contributions(centred, values, weights, panel), pairs: decidingPairs(values, weights, panel) };
  });
  return { scores: Array.from(scores), classes: of };
}

/** Weights of a class; the first of two has those of the second, turned. */
function weightsOf(panel, c) {
  const n = panel.present.length;
  if (panel.nRows === 1) return panel.coef.map((x) => (c === 1 ? x : -x));
  return panel.coef.slice(c * n, (c + 1) * n);
}

function contributions(centred, values, weights, panel) {
  const genes = panel.present.map((gene, j) => ({
    gene,
    value: values[j],
    rank: centred[j],
    weight: weights[j],
    contribution: weights[j] * centred[j],
  }));
  const used = genes.filter((line) => line.weight !== 0);
  used.sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  return { genes: used, score: used.reduce((sum, line) => sum + line.contribution, 0) };
}

function decidingPairs(values, weights, panel) {
  const n = values.length;
  const found = [];
  for (let j = 0; j < n; j++) {
    for (let l = j + 1; l < n; l++) {
      const sign = Math.sign(values[j] - values[l]);
      const vote = ((weights[j] - weights[l]) * sign) / (2 * n);
      if (vote !== 0) found.push([vote, sign > 0 ? j : l, sign > 0 ? l : j]);
    }
  }
  found.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]));
  return found.slice(0, PAIRS).map(([vote, higher, lower]) => ({
    higher: panel.present[higher],
    lower: panel.present[lower],
    valueHigher: values[higher],
    valueLower: values[lower],
    vote,
  }));
}
