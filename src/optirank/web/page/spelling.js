// Names of genes that carry more than the gene: its Entrez number, or the genome.

import { some } from "./text.js";

const WITH_NUMBER = /^([^|\s]+)\|(\d+)$/; // ESR1|2099 of TCGA's RSEM files
const GENOMES = "hg18|hg19|hg38|GRCh37|GRCh38|mm9|mm10|mm39|GRCm38|GRCm39";
const WITH_GENOME = new RegExp(`^(?:(${GENOMES})_+(.+)|(.+)_(${GENOMES}))$`, "i");

/** The names without what all of them carry, and notes that say what was changed. */
export function plainGeneNames(names) {
  if (!names.length) return { names, notes: [] };
  const changed = (plain, without) => ({
    names: plain,
    notes: [`gene names are read without ${without}: ${some(names, 2)}`],
  });
  if (names.every((name) => WITH_NUMBER.test(name))) {
    const pairs = names.map((name) => WITH_NUMBER.exec(name));
    const plain = pairs.map(([, symbol, entrez]) => (symbol === "?" ? entrez : symbol));
    return changed(plain, "their Entrez numbers");
  }
  if (!names.every((name) => WITH_GENOME.test(name))) return { names, notes: [] };
  const found = names.map((name) => WITH_GENOME.exec(name));
  const genomes = new Set(found.map((one) => (one[1] || one[4]).toLowerCase()));
  if (genomes.size > 1) return { names, notes: [] };
  return changed(found.map((one) => one[2] || one[3]), `the genome (${[...genomes][0]})`);
}
