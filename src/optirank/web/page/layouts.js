// Where the table is in a text file, and what its columns are: the rules of `optirank.io.table_files`.

import { fieldTexts, linesOf, textOf } from "./lines.js";
import { some } from "./text.js";

// Names of columns that describe genes, as they are without case, blanks and marks
const ABOUT_GENES = new Set([
  "entrezgeneid", "entrezid", "entrezgene", "entrez", "hugosymbol", "symbol", "genesymbol", "genename",
  "geneid", "ensemblid", "ensemblgeneid", "ensembl", "genetype", "genebiotype", "biotype", "description",
  "genedescription", "chr", "chrom", "chromosome", "start", "end", "strand", "length", "genelength",
  "effectivelength", "efflength", "cytoband", "transcriptids",
]);
const FEATURE_COUNTS = "Geneid Chr Start End Strand Length";
// Headers of one sample's estimates: the program, and the column that is read
const QUANTIFIED = new Map([
  ["Name Length EffectiveLength TPM NumReads", ["Salmon", "TPM"]],
  ["target_id length eff_length est_counts tpm", ["kallisto", "tpm"]],
  ["gene_id transcript_id(s) length effective_length expected_count TPM FPKM", ["RSEM", "TPM"]],
]);
const TRANSCRIPT = /^(?:ENS[A-Z]*T\d{6,}|[NX][MR]_\d+)/;
const ENSEMBL_GENE = /^ENS[A-Z]*G\d{6,}(?:\.\d+)?$/;
// Ends of names of files that are no part of the sample's name
const ENDINGS =
  /(?:\.gz|\.txt|\.tsv|\.tab|\.csv|\.sf|\.out|\.counts?|\.genes|\.results|_?ReadsPerGene|[._]htseq|_counts?)+$/i;
const BARE = ["quant", "quant.genes", "abundance", ""];
const PEEKED = 100; // lines that tell whether every line ends in a separator
const TABLE_BEGIN = "!series_matrix_table_begin";
const TABLE_END = "!series_matrix_table_end";
const TAB = 9;

const PLAIN = {
  format: "", // "" where the file does not say it
  header: [],
  before: 0, // lines before the header
  after: 0, // lines after the header and before the values
  hasHeader: true,
  nAbout: 0, // columns about genes after their names, whatever they are called
  genesIn: null,
  noGenes: null, // how names begin that are no genes
  counted: null, // the one column that is read, of one sample's file
  separator: TAB,
  platform: "",
};

/** The layout that the first lines of a file say. */
export async function findLayout(file) {
  const lines = linesOf(file);
  const next = async (otherwise = new Uint8Array(0)) => (await lines.next()).value ?? otherwise;
  const first = await next();
  const start = textOf(first.subarray(0, 100));
  if (/^#1\.[23]\s*$/.test(start)) return gct(file.name, start, next);
  if (/^!(Series|Sample)_/.test(start)) return seriesMatrix(file.name, first, lines);
  const fields = textOf(first).split("\t");
  if (fields.length === 4 && fields[0] === "N_unmapped") {
    return oneSample("STAR", ["gene", sampleOf(file.name), "forward", "reverse"], "N_");
  }
  if (fields.length >= 2 && fields.slice(1).every((text) => /^\d+$/.test(text))) {
    const headerless = await withoutHeader(file, fields);
    if (headerless) return headerless;
  }
  return withHeader(file.name, first, next);
}

/** The separator of a line: that of the file's name, else the most frequent. */
function separatorOf(name, line) {
  const suffixes = name.toLowerCase().split(".").slice(1).slice(-2);
  const usual = suffixes.includes("csv") ? "," : "\t";
  const counts = (mark) => countOf(line, mark.charCodeAt(0));
  let chosen = usual;
  if (!counts(usual)) for (const mark of [",", "\t", ";"]) if (counts(mark) > counts(chosen)) chosen = mark;
  return chosen.charCodeAt(0);
}

const countOf = (line, mark) => line.reduce((n, code) => n + (code === mark), 0);

/** Whether a column of this name is about genes, and is no sample. */
export const describesGenes = (name) =>
  ABOUT_GENES.has(name.replace(/[^\p{L}\p{N}]+/gu, "").toLowerCase());

/** The name of the sample that a file is of. */
function sampleOf(name) {
  const stem = name.replace(ENDINGS, "");
  return BARE.includes(stem) ? name : stem;
}

const fieldsOf = (line, separator) => (line.length ? fieldTexts(line, separator) : []);

async function gct(name, version, next) {
  const sizes = fieldsOf(await next(), TAB).filter((text) => text.trim()).map(Number);
  const header = fieldsOf(await next(), TAB);
  const [nAbout, nObs] = version.startsWith("#1.3") ? sizes.slice(2, 4) : [1, 0];
  if (!(nAbout >= 0 && nObs >= 0 && header.length >= 2 + nAbout)) {
    throw new Error(`${name} is no GCT file: its third line has no samples`);
  }
  return { ...PLAIN, format: "GCT", header, before: 2, after: nObs, nAbout, genesIn: "rows" };
}

async function seriesMatrix(name, first, lines) {
  const supplements = [];
  let platform = "";
  let before = 0;
  for (let line = first; line !== undefined; line = (await lines.next()).value) {
    before++;
    const [key, ...values] = fieldsOf(line, TAB);
    if (key?.startsWith(TABLE_BEGIN)) break;
    if (key?.endsWith("_supplementary_file")) {
      supplements.push(...values.filter((text) => text && text !== "NONE"));
    }
    if (key === "!Series_platform_id") platform = values[0] ?? "";
  }
  const begun = (await lines.next()).value;
  if (begun === undefined) {
    throw new Error(
      `${name} is a GEO series matrix without ${TABLE_BEGIN}: it may be cut off, fetch it again`,
    );
  }
  const header = fieldsOf(begun, TAB);
  const below = (await lines.next()).value;
  if (below === undefined || textOf(below).startsWith(TABLE_END)) {
    throw new Error(
      `${name} is a GEO series matrix without values, as those of RNA-Seq are: the values are in the ` +
        `supplementary files of the series, fetch one of them: ${some(supplements, 3)}`,
    );
  }
  return { ...PLAIN, format: "GEO series matrix", header, before, genesIn: "rows", noGenes: TABLE_END, platform };
}

/** The layout of counts whose first line is a gene already; null for other tables. */
async function withoutHeader(file, fields) {
  const isGene = ENSEMBL_GENE.test(fields[0]);
  if (fields.length === 2) {
    if (isGene || (await hasSummary(file))) return oneSample("HTSeq", ["gene", sampleOf(file.name)], "__");
  } else if (isGene) {
    throw new Error(
      `${file.name} has no header: its first line is the gene ${fields[0]}; put a line with the names ` +
        "of the samples above it",
    );
  }
  return null;
}

async function hasSummary(file) {
  for await (const line of linesOf(file)) if (textOf(line).startsWith("__no_feature")) return true;
  return false;
}

const oneSample = (format, header, noGenes) => ({
  ...PLAIN,
  format,
  header,
  hasHeader: false,
  genesIn: "rows",
  noGenes,
  counted: header[1],
});

async function withHeader(name, first, next) {
  let before = 0;
  let comment = null;
  const waiting = [];
  while (first[0] === 35) {
    comment = first;
    first = await next();
    before++;
  }
  let separator = separatorOf(name, first);
  const marks = comment === null ? 0 : countOf(comment, separator);
  if (marks >= 1 && marks === countOf(first, separator)) {
    waiting.push(first); // a header that begins with a #
    first = comment;
    before--;
  }
  separator = separatorOf(name, first);
  while (waiting.length < PEEKED) {
    const line = await next(null);
    if (line === null) break;
    if (line.length) waiting.push(line.slice());
  }
  const header = wholeHeader(fieldsOf(first, separator), waiting.map((line) => fieldTexts(line, separator)));
  return knownHeader(name, { ...PLAIN, header, before, separator });
}

/** The header with as many names as the lines have fields. */
function wholeHeader(header, lines) {
  const n = header.length + 1;
  if (!lines.length || lines[0].length !== n) return header;
  if (lines.every((line) => line.length === n && !line.at(-1))) return [...header, ""];
  return ["", ...header]; // R writes no name above the names of the lines
}

function knownHeader(name, layout) {
  const { header } = layout;
  const known = QUANTIFIED.get(header.join(" "));
  if (known) {
    const [format, counted] = known;
    const sample = sampleOf(name);
    const named = header.map((text, k) => (k && text === counted ? sample : text));
    return { ...layout, format, header: named, genesIn: "rows", counted: sample };
  }
  if (header.slice(0, 6).join(" ") === FEATURE_COUNTS) {
    return { ...layout, format: "featureCounts", genesIn: "rows" };
  }
  if (["Hugo_Symbol", "Entrez_Gene_Id"].includes(header[0])) {
    return { ...layout, format: "cBioPortal", genesIn: "rows" };
  }
  return layout;
}

/** Refuse one sample's estimates for transcripts, which no model of genes knows. */
export function refuseTranscripts(name, names, layout) {
  if (!layout.counted || !names.length || !TRANSCRIPT.test(names[0])) return;
  throw new Error(
    `${name} has the transcripts of one sample (${layout.format}), such as ${names[0]}: sum them by ` +
      "gene, of all samples together, in R: library(tximport); tximport(files, type = 'salmon', " +
      "tx2gene = table), and write its matrix of abundances as a table",
  );
}
