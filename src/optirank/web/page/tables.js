// Tables of text: genes in rows or columns, annotations beside them, values parsed.

import { Checks } from "./checks.js";
import { genesAmong, nameWarnings } from "./features.js";
import { describesGenes, findLayout, refuseTranscripts } from "./layouts.js";
import { QUOTE, fieldStarts, fieldTexts, linesOf, numberOf, parseNumber, someFields } from "./lines.js";
import { plainGeneNames } from "./spelling.js";
import { counted, duplicates, quoted, readable, some, stripped } from "./text.js";

const DECIMAL_COMMA = /^\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*$/;

/**
 * Open a table: the source that `label` takes.
 *
 * `options` has genesIn ("rows", "columns" or null: as the format says, or where more of the wanted
 * names are), annotations (names of columns that are no values), geneColumn, invert, anyScale and
 * dropMissing.
 */
export async function openTable(file, wanted, options, progress) {
  const head = await readable(file.name, () => readHead(file, options, progress));
  checkDescribed(file.name, head);
  const genesIn = orientation(file.name, head, wanted, options.genesIn);
  if (options.geneColumn && genesIn === "columns") {
    throw new Error(
      `${file.name}: the gene column '${options.geneColumn}' is for tables with genes in rows`,
    );
  }
  const aboutGenes = genesIn === "rows" ? head.aboutGenes : [];
  const named = new Set([...head.described, ...aboutGenes]);
  const beside = head.header.map((_, k) => k).filter((k) => k > 0 && named.has(head.header[k]));
  const skipped = new Set([0, ...beside, ...head.emptyColumns]);
  const inside = head.header.map((_, k) => k).filter((k) => !skipped.has(k));
  if (!inside.length || !head.lines.length) {
    throw new Error(
      `${file.name} holds no numbers: it has ${head.lines.length} lines, ${inside.length} columns`,
    );
  }
  const across = inside.map((k) => head.header[k]);
  const { names, notes } = namesOfGenes(file.name, head, genesIn, across, beside, wanted, options);
  const samples = genesIn === "rows" ? across : head.lines;
  notes.push(...repeatedSamples(samples));
  if (aboutGenes.length) notes.push(`columns that are no samples are left out: ${some(aboutGenes)}`);
  if (options.invert) notes.push("values are inverted: the lowest of the table is the most expressed");
  const table = { file, head, inside, genesIn, genes: names, samples, known: wanted, platform: head.layout.platform, options };
  const complete = options.dropMissing ? await readable(file.name, () => completeGenes(table)) : null;
  return sourceOfTable(table, complete, notes);
}

/** The source of a table, of all its genes or of those without missing values. */
function sourceOfTable(table, complete, notes) {
  const { file, options, head } = table;
  const given = complete === null ? table.genes : complete.map((k) => table.genes[k]);
  const among = genesAmong(file.name, given, {}, null);
  const kept = complete === null ? among.kept : among.kept.map((k) => complete[k]);
  const warnings = nameWarnings(file.name, among.genes, options.anyScale ? null : table);
  const asked = head.layout.genesIn && !options.genesIn ? null : table.genesIn;
  return {
    name: file.name,
    genes: among.genes,
    others: {},
    rawGenes: null,
    notes: [...notes, ...among.notes],
    warnings,
    genesIn: asked,
    nSamples: table.samples.length,
    samples: table.samples,
    options: {
      genes_in: asked,
      annotations: options.annotations.length ? options.annotations : null,
      gene_column: options.geneColumn || null,
      invert: options.invert || null,
      any_scale: options.anyScale || null,
      drop_missing: options.dropMissing || null,
    },
    read: (parts, progress) =>
      readable(file.name, () => {
        const inTable = parts.map(({ groups, rows }) => ({
          groups: groups.map((group) => group.map((k) => kept[k])),
          rows,
        }));
        return read(table, inTable, complete !== null, warnings, progress);
      }),
  };
}

/** The header, the names of the lines, columns beside them, and how fields are written. */
async function readHead(file, options, progress) {
  const layout = await findLayout(file);
  const { header, separator } = layout;
  if (header.length === 1) {
    throw new Error(
      `${file.name} has a single column: separate its columns by commas, tabs or semicolons`,
    );
  }
  const described = [...options.annotations, ...(options.geneColumn ? [options.geneColumn] : [])];
  const about = new Set(header.slice(1, 1 + layout.nAbout));
  const aboutGenes = header.slice(1).filter(
    (name) =>
      !described.includes(name) &&
      (about.has(name) || describesGenes(name) || (layout.counted !== null && name !== layout.counted)),
  );
  const unnamed = header.map((_, k) => k).filter((k) => k > 0 && !header[k].trim());
  const wanted = new Set([...described, ...aboutGenes]);
  const looked = header.map((_, k) => k).filter((k) => k === 0 || wanted.has(header[k]) || unnamed.includes(k));
  const columns = new Map(looked.map((k) => [k, []]));
  let first = null;
  for await (const line of bodyLines(file, layout, (seen, all) => progress("reading names", seen, all))) {
    if (!line.length) continue;
    first ??= fieldTexts(line, separator);
    const texts = someFields(line, separator, looked);
    if (layout.noGenes !== null && texts[0].startsWith(layout.noGenes)) continue;
    texts.forEach((text, place) => columns.get(looked[place]).push(text));
  }
  if (first === null) {
    throw new Error(
      `${file.name} is empty: it should have a header line and a line for each entry`,
    );
  }
  const commas = separator !== 44 && first.some((text) => DECIMAL_COMMA.test(text));
  return {
    layout,
    header,
    separator,
    columns,
    described,
    aboutGenes,
    lines: columns.get(0),
    emptyColumns: unnamed.filter((k) => columns.get(k).every((text) => text === "")),
    decimal: commas ? 44 : 46,
  };
}

/** The lines of a file behind its header. */
async function* bodyLines(file, layout, progress = () => {}) {
  const skipped = layout.before + (layout.hasHeader ? 1 : 0) + layout.after;
  let number = 0;
  for await (const line of linesOf(file, progress)) if (number++ >= skipped) yield line;
}

/** Where the genes are: as the format says, as was asked, or where more of the wanted ones are. */
function orientation(name, head, wanted, asked) {
  const { genesIn, format } = head.layout;
  if (genesIn && asked && asked !== genesIn) {
    throw new Error(
      `${name} is a ${format} file, which has its genes in ${genesIn}: leave genes_in='${asked}' out`,
    );
  }
  if (asked || genesIn) return asked ?? genesIn;
  const known = new Set(wanted.map((gene) => gene.toLowerCase()));
  const found = (names) =>
    plainGeneNames(names.map(stripped)).names.filter((gene) => known.has(gene.toLowerCase())).length;
  const rows = Math.max(...[...head.columns.values()].map(found));
  const columns = found(head.header.slice(1));
  if (rows !== columns) return rows > columns ? "rows" : "columns";
  return head.lines.length >= head.header.length ? "rows" : "columns";
}

function checkDescribed(name, head) {
  const columns = head.header.slice(1);
  const absent = head.described.filter((column) => !columns.includes(column));
  if (absent.length) {
    const transposed = head.lines.some((line) => absent.includes(line));
    const hint = transposed
      ? "; it has such a line: is it transposed? (genes_in='rows')"
      : "";
    throw new Error(`${name} has no column ${some(absent)}: there are ${some(columns, 20)}${hint}`);
  }
  const repeated = duplicates(columns).filter((column) => head.described.includes(column));
  if (repeated.length) {
    throw new Error(`${name} has several columns called ${some(repeated)}: rename or remove them`);
  }
}

/** The names of the genes, and what was changed in them. */
function namesOfGenes(name, head, genesIn, across, beside, wanted, options) {
  if (genesIn === "columns") return plainGeneNames(across.map(stripped));
  let column = 0;
  if (options.geneColumn) column = head.header.indexOf(options.geneColumn, 1);
  else column = columnWithMost(head, beside, wanted);
  const written = head.columns.get(column).map(stripped);
  refuseTranscripts(name, written, head.layout);
  const { names, notes } = plainGeneNames(written);
  if (column && !options.geneColumn) {
    notes.push(
      `genes are named by the column '${head.header[column]}', which has more of the model's genes ` +
        "than the first",
    );
  }
  return { names, notes };
}

/** The column with most of the genes that are known; the first if none has more. */
function columnWithMost(head, beside, wanted) {
  const known = new Set(wanted);
  let best = 0;
  let most = -1;
  for (const k of [0, ...beside]) {
    const found = new Set(head.columns.get(k).map(stripped).filter((gene) => known.has(gene))).size;
    if (found > most) [best, most] = [k, found];
  }
  return best;
}

/** A note on names that several samples have. */
export function repeatedSamples(names) {
  const repeated = duplicates(names);
  if (!repeated.length) return [];
  const what = counted(repeated.length, "sample name occurs", "sample names occur");
  return [`${what} more than once: ${some(repeated)}`];
}

/**
 * Values of parts: of each the groups of columns, added up to one each, of all samples or some rows.
 *
 * With genes in rows every value is parsed; with genes in columns those of the genes alone, unless
 * these are most. Words are refused, and so are missing values of the genes.
 */
async function read(table, parts, isComplete, warnings, progress) {
  const chosen = [...new Set(parts.flatMap(({ groups }) => groups.flat()))];
  const every = table.genesIn === "rows" || 2 * chosen.length > table.genes.length;
  const parsed = every ? table.genes.map((_, k) => k) : chosen;
  const place = new Map(chosen.map((gene, k) => [gene, k]));
  const n = chosen.length;
  const checks = new Checks(table, isComplete);
  const invert = table.options.invert ? await inversion(table, parsed, checks, progress) : null;
  const values = new Float64Array(table.samples.length * n);
  await scan(table, parsed, progress, (sample, gene, number) => {
    const at = place.get(gene);
    if (invert === null) checks.see(number);
    if (at !== undefined) values[sample * n + at] = number;
  });
  checks.mark(values);
  if (invert !== null) values.forEach((x, k) => (values[k] = invert(x)));
  checks.refuse(values, chosen);
  for (const warning of checks.warningsOf(values, n)) if (!warnings.includes(warning)) warnings.push(warning);
  return parts.map(({ groups, rows }) => picked(values, n, place, groups, rows));
}

/** Samples (all or some rows) by groups of columns, each added up to one. */
function picked(values, n, place, groups, rows) {
  const nRows = rows?.length ?? values.length / n;
  const sums = new Float64Array(nRows * groups.length);
  const columns = groups.map((group) => group.map((gene) => place.get(gene)));
  for (let i = 0; i < nRows; i++) {
    const start = (rows?.[i] ?? i) * n;
    for (let k = 0; k < columns.length; k++) {
      let sum = -0; // to which a value is added as it is, also -0
      for (const column of columns[k]) sum += values[start + column];
      sums[i * columns.length + k] = sum;
    }
  }
  return sums;
}

/** What turns values of which less is more the other way round; infinite ones were not detected. */
async function inversion(table, parsed, checks, progress) {
  let highest = -Infinity;
  let undetected = false;
  await scan(table, parsed, progress, (_, __, number) => {
    checks.see(number);
    if (number === Infinity) undetected = true;
    else if (number > highest) highest = number;
  });
  const code = checks.code();
  if (highest === code) highest = -Infinity; // every value is missing
  if (highest === -Infinity) return (x) => (x === Infinity ? 0 : x);
  const top = highest + (undetected ? 1 : 0);
  return (x) => (x === Infinity ? 0 : top - x);
}

/** Positions of the genes without missing values. */
async function completeGenes(table) {
  const checks = new Checks(table, false);
  const parsed = table.genes.map((_, k) => k);
  const incomplete = new Set();
  const coded = new Map();
  await scan(table, parsed, () => {}, (_, gene, number) => {
    checks.see(number);
    if (checks.isCode(number)) coded.set(number, (coded.get(number) ?? new Set()).add(gene));
    const isNumber = Number.isFinite(number) || (table.options.invert && number === Infinity);
    if (!isNumber) incomplete.add(gene);
  });
  for (const gene of coded.get(checks.code()) ?? []) incomplete.add(gene);
  const complete = parsed.filter((gene) => !incomplete.has(gene));
  if (!complete.length) {
    throw new Error(`${table.file.name}: every gene has a missing value: fill them in`);
  }
  return complete;
}

/** Parse the values of some genes, and call `use` with sample, gene and number; refuse words. */
async function scan(table, genes, progress, use) {
  const { head, inside } = table;
  const byRows = table.genesIn === "rows";
  const positions = byRows ? inside.map((_, k) => k) : genes;
  const words = new Map();
  await eachLine(table, progress, (line, number) => {
    if (line.length > head.header.length) refuseLong(table, number, line.length);
    for (const k of positions) {
      let value = line.number(inside[k]);
      if (value === undefined) {
        const text = line.text(inside[k]);
        if (!(table.options.invert && isUndetected(text))) {
          addWord(words, inside[k], number, text);
          continue;
        }
        value = Infinity;
      }
      if (byRows) use(k, number, value);
      else use(number, k, value);
    }
  });
  refuseWords(table, words, positions.map((k) => inside[k]));
}

const UNDETECTED = ["undetermined", "undet", "undetected", "no ct", "nd"];
const isUndetected = (text) => UNDETECTED.includes(text.trim().toLowerCase());

function addWord(words, column, number, text) {
  if (!words.has(column)) words.set(column, { number, text, count: 0 });
  words.get(column).count++;
}

/** Calls a function with every line of a gene or sample, by its number, without parsing it. */
async function eachLine(table, progress, use) {
  const { head, file } = table;
  const { separator, decimal, layout } = head;
  const starts = new Int32Array(head.header.length + 2);
  let number = 0;
  for await (const line of bodyLines(file, layout, (seen, all) => progress("reading values", seen, all))) {
    if (!line.length) continue;
    if (layout.noGenes !== null && someFields(line, separator, [0])[0].startsWith(layout.noGenes)) continue;
    if (line.includes(QUOTE)) {
      const texts = fieldTexts(line, separator);
      const text = (k) => texts[k] ?? "";
      use({ length: texts.length, text, number: (k) => numberOf(text(k), decimal) }, number++);
      continue;
    }
    const length = fieldStarts(line, separator, starts);
    use(
      {
        length,
        text: (k) => (k < length ? new TextDecoder().decode(line.subarray(starts[k], starts[k + 1] - 1)) : ""),
        number: (k) => (k < length ? parseNumber(line, starts[k], starts[k + 1] - 1, decimal) : NaN),
      },
      number++,
    );
  }
}

function refuseLong(table, number, length) {
  const n = table.head.header.length;
  throw new Error(
    `${table.file.name} cannot be read, it may be truncated or damaged: Error tokenizing data. C ` +
      `error: Expected ${n} fields in line ${number + 1}, saw ${length} (copy or fetch it again)`,
  );
}

function refuseWords(table, words, columns) {
  const column = columns.find((k) => words.has(k));
  if (column === undefined) return;
  const { number, text, count } = words.get(column);
  const { lines, header } = table.head;
  let remedy = "correct it";
  if (isUndetected(text)) {
    remedy = "if these are Ct values of qPCR, of which less is more, say so (invert=)";
  } else if (count === lines.length) {
    remedy = "if that column describes the lines, name it (annotations=)";
  }
  throw new Error(
    `${table.file.name}: line ${quoted(lines[number])} (number ${number + 1} below the header), ` +
      `column ${quoted(header[column])} holds ${quoted(text)}, which is not a number: ${remedy}`,
  );
}
