// Which features of a file are genes, and what these are called.

import { counted, duplicates, some, stripped } from "./text.js";

const GENE_EXPRESSION = "Gene Expression"; // the features of 10x that are genes
const TYPES = ["feature_types", "feature_type"];
// Probes of Xenium, MERFISH, CosMx and Visium that measure no gene
const CONTROL = new RegExp(
  "^(?:NegControl(?:Probe|Codeword)_|(?:Unassigned|Deprecated)Codeword_|antisense_|" +
    "BLANK[_-]|Blank[_-]|NegPrb|Negative[0-9]|SystemControl|FalseCode|Intergenic_Region_)",
);

/**
 * Positions of the features that are genes, their names, those of other columns, and notes.
 *
 * `columns` are texts of the features by column; `geneColumn` names the one to use, or is null.
 */
export function genesAmong(source, index, columns, geneColumn) {
  if (geneColumn !== null && !(geneColumn in columns)) {
    throw new Error(
      `${source} has no gene column '${geneColumn}': there are ${some(Object.keys(columns), 20)}; ` +
        "without one the index of var is used",
    );
  }
  const features = (geneColumn === null ? index : columns[geneColumn]).map(stripped);
  const named = TYPES.find((name) => name in columns);
  const types = named && columns[named].includes(GENE_EXPRESSION) ? columns[named] : null;
  const noGene = types ? types.map((type) => type !== GENE_EXPRESSION) : features.map(() => false);
  const notes = [];
  const nOthers = noGene.filter(Boolean).length;
  if (nOthers) {
    const kinds = [...new Set(types.filter((_, k) => noGene[k]))].sort();
    notes.push(`${nOthers} features are left out, they are no genes: ${some(kinds)}`);
  }
  const control = features.map((name, k) => !noGene[k] && CONTROL.test(name));
  const probes = features.filter((_, k) => control[k]);
  if (probes.length) notes.push(`${probes.length} control probes are left out: ${some(probes, 3)}`);
  let kept = features.map((_, k) => k).filter((k) => !noGene[k] && !control[k]);
  if (!kept.length || kept.length === features.length) {
    kept = features.map((_, k) => k);
    notes.length = 0;
  }
  const others = {};
  for (const [name, texts] of Object.entries(columns)) {
    if (name !== geneColumn && !TYPES.includes(name)) others[name] = kept.map((k) => stripped(texts[k]));
  }
  return { kept, genes: kept.map((k) => features[k]), others, notes };
}

/**
 * What is worth a warning about the names of genes: dates of a spreadsheet, probes, names that
 * repeat. `table` has the platform of a table and the known genes; it is null for other files.
 */
export function nameWarnings(source, genes, table) {
  const warnings = [];
  const dates = table ? genes.filter((name) => DATE.test(name)) : [];
  if (dates.length) {
    warnings.push(
      `${source}: ${some(dates)} look like gene names that a spreadsheet turned into dates (1-Mar ` +
        "was MARCH1, 2-Sep was SEPT2): restore them, or they match no other data",
    );
  }
  if (table && areProbes(genes, table.known)) warnings.push(probeWarning(source, genes, table.platform));
  const repeated = duplicates(genes);
  if (repeated.length) {
    const what = counted(repeated.length, "gene name occurs", "gene names occur");
    warnings.push(`${source}: ${what} more than once: ${some(repeated)}`);
  }
  return warnings;
}

const MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec";
const DATE = new RegExp(`^(?:\\d{1,2}-(?:${MONTHS})(?:-\\d+)?|(?:${MONTHS})-\\d{1,2})$`, "i");
// Probes of Affymetrix (also gene arrays), Illumina and Agilent
const PROBE = /^(?:AFFX-.+|\d+(?:_[a-z]+)*_at|\d{7,8}|TC\w{6,}\.hg\.\d+|ILMN_\d+|A_\d\d_P\d+)$/;
const MANY_PROBES = 20; // of fewer names, numbers may be anything

function areProbes(genes, known) {
  const found = genes.filter((name) => PROBE.test(name)).length;
  if (2 * found <= genes.length || genes.length < MANY_PROBES) return false;
  const names = new Set(genes);
  return !known.some((name) => names.has(name));
}

function probeWarning(source, genes, platform) {
  const where = platform ? ` (https://www.ncbi.nlm.nih.gov/geo/query/acc.cgi?acc=${platform})` : "";
  return (
    `${source}: ${some(genes.slice(0, 3))} are probes of an array and no genes: they match only data ` +
    "of the same array; for genes, give a table of two columns, probe and symbol, made from the " +
    `platform's table${where} (homologs=)`
  );
}
