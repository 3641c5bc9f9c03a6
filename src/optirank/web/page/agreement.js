// Whether the labels of a query can be right as a whole: do samples differ, in genes outside the panel,
// as the classes of the training data do?

import { counted, fixed, share, some } from "./text.js";
import { centredRanks, correlation } from "./votes.js";

/** Every how many-th sample of a query is looked at. */
export const everySoMany = (nSamples, limits) => Math.max(1, Math.ceil(nSamples / limits.most_samples));

/** How many samples have each label, and the mean ranks of the further genes by label. */
export function labelMeans(values, labels, nClasses, nGenes) {
  const counts = new Float64Array(nClasses);
  const means = Array.from({ length: nClasses }, () => new Float64Array(nGenes));
  labels.forEach((label, i) => {
    counts[label]++;
    const ranks = centredRanks(values.subarray(i * nGenes, (i + 1) * nGenes));
    for (let j = 0; j < nGenes; j++) means[label][j] += ranks[j];
  });
  means.forEach((row, label) => row.forEach((sum, j) => (row[j] = sum / Math.max(1, counts[label]))));
  return { counts, means };
}

/**
 * Compare the mean ranks of the reference with those of a query's labels.
 *
 * `overall` is null where fewer than two labels have three samples, or genes are few and show no
 * clear agreement; `byLabel` has the agreement of each label that was looked at, by its position.
 */
export function agreementOf(reference, query, limits) {
  const nGenes = reference[0]?.length ?? 0;
  const labels = Array.from(query.counts.keys()).filter((label) => query.counts[label] >= limits.fewest_samples);
  const nothing = { nGenes, overall: null, byLabel: new Map() };
  if (labels.length < 2 || !nGenes) return nothing;
  const ofReference = differences(labels.map((label) => reference[label]));
  const ofQuery = differences(labels.map((label) => query.means[label]));
  const joined = (rows) => Float64Array.from(rows.flatMap((row) => Array.from(row)));
  const overall = correlation(joined(ofReference), joined(ofQuery));
  if (nGenes < limits.fewest_genes && overall * Math.sqrt(nGenes) <= limits.clear) return nothing;
  const byLabel = labels.map((label, k) => [label, correlation(ofReference[k], ofQuery[k])]);
  return { nGenes, overall, byLabel: new Map(byLabel) };
}

function differences(rows) {
  const mean = rows[0].map((_, j) => rows.reduce((sum, row) => sum + row[j], 0) / rows.length);
  return rows.map((row) => row.map((x, j) => x - mean[j]));
}

/**
 * What checks the labels of a query: alarms and notes.
 *
 * `compared` is the agreement, null where the model stores no further genes; `likeness` the median
 * likeness, null where it is not known; `missing` the share of the panel's genes that the query lacks.
 */
export function judge({ compared, likeness, missing, nSamples }, classes, limits) {
  const agreement = compared?.overall ?? null;
  const byLabel = [...(compared?.byLabel ?? [])].map(([label, value]) => [classes[label], value]);
  if (agreement === null) {
    const alarms = [];
    if ((likeness ?? Infinity) < limits.unlike_unchecked) alarms.push(limits.unlikely);
    if (missing > limits.most) {
      alarms.push(
        `${share(missing, 0)} of the panel's genes are missing, and nothing else checks the labels: ` +
          "they may all be wrong",
      );
    }
    const why = whyUnchecked(compared, nSamples, limits);
    return { agreement, byLabel, alarms, notes: [`the labels cannot be checked by other genes: ${why}`] };
  }
  const doubted = agreement < limits.doubt_below && (likeness ?? Infinity) < limits.unlike;
  const alarmed = doubted || agreement < limits.alarm_below;
  const alarms = alarmed
    ? [`${limits.unlikely}. Genes outside the panel do not confirm the labels (agreement ${fixed(agreement, 2)})`]
    : [];
  const notes = [`agreement of other genes ${fixed(agreement, 2)}`];
  const low = byLabel.filter(([, value]) => value < limits.low_label).sort((a, b) => a[1] - b[1] || (a[0] < b[0] ? -1 : 1));
  if (low.length && !alarmed) {
    notes.push(
      `${counted(low.length, "label agrees", "labels agree")} little with the training data in other ` +
        `genes: ${some(low.map(([label, value]) => `${label} ${fixed(value, 2)}`))}; look at the markers of these`,
    );
  }
  return { agreement, byLabel, alarms, notes };
}

/** Why there is no agreement, and what follows. */
function whyUnchecked(compared, nSamples, limits) {
  if (compared === null) {
    return (
      "the model stores none, because its training data had too few genes outside the panel that " +
      "differ between the classes"
    );
  }
  if (compared.nGenes < limits.fewest_genes) {
    return (
      `the query has ${compared.nGenes} of those that the model stores; a check takes ` +
      `${limits.fewest_genes}, or fewer that agree clearly`
    );
  }
  return (
    `a check takes two labels with at least ${limits.fewest_samples} samples each; the query has ` +
    `${counted(nSamples, "sample", "samples")}`
  );
}
