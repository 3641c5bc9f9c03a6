// Agreement of other genes: whether labels differ, in genes outside the panel, as in the training data.

import { centredRanks } from "./rank.js";
import { correlation } from "./vote.js";

/** Every how many-th sample of a query is looked at. */
export const everySoMany = (nSamples, words) => Math.max(1, Math.ceil(nSamples / words.most_samples));

/** Mean ranks of the further genes by label, of samples (rows of values) with these labels. */
export function labelMeans(values, labels, nClasses, nGenes) {
  const counts = new Float64Array(nClasses);
  const means = Array.from({ length: nClasses }, () => new Float64Array(nGenes));
  labels.forEach((label, i) => {
    counts[label]++;
    const ranks = centredRanks(values.subarray(i * nGenes, (i + 1) * nGenes));
    const sums = means[label];
    for (let j = 0; j < nGenes; j++) sums[j] += ranks[j];
  });
  means.forEach((row, label) => row.forEach((x, j) => (row[j] = x / Math.max(1, counts[label]))));
  return { counts, means };
}

/**
 * Compare the mean ranks of the reference with those of a query's labels.
 *
 * `overall` is null where fewer than two labels have three samples, or genes are few and show no
 * clear agreement; `byLabel` has
 * the agreement of each label that was looked at, by its position.
 */
export function agreementOf(reference, query, words) {
  const nGenes = reference[0]?.length ?? 0;
  let found = Array.from(query.counts.keys()).filter((label) => query.counts[label] >= words.fewest_samples);
  if (found.length < 2 || !nGenes) found = [];
  const own = differences(found.map((label) => reference[label]));
  const given = differences(found.map((label) => query.means[label]));
  const joined = (rows) => Float64Array.from(rows.flatMap((row) => Array.from(row)));
  let overall = found.length ? correlation(joined(own), joined(given)) : null;
  if (overall !== null && nGenes < words.fewest_genes && overall * Math.sqrt(nGenes) <= words.clear) {
    found = [];
    overall = null;
  }
  return {
    nGenes,
    overall,
    byLabel: new Map(found.map((label, k) => [label, correlation(own[k], given[k])])),
  };
}

function differences(rows) {
  if (!rows.length) return rows;
  const mean = rows[0].map((_, j) => rows.reduce((sum, row) => sum + row[j], 0) / rows.length);
  return rows.map((row) => row.map((x, j) => x - mean[j]));
}

/** Whether the genes of a query are in the opposite order of those of every class. */
export function looksInverted(reference, query, words) {
  const nGenes = reference[0]?.length ?? 0;
  if (nGenes < words.fewest_genes) return false;
  const total = Math.max(1, query.counts.reduce((sum, n) => sum + n, 0));
  const mean = new Float64Array(nGenes);
  query.means.forEach((row, label) => row.forEach((x, j) => (mean[j] += (query.counts[label] / total) * x)));
  const limit = Math.max(words.inverted_below, words.chance / Math.sqrt(nGenes));
  return reference.every((row) => correlation(mean, row) < -limit);
}
