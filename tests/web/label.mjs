// Labels of tables by the modules of the page, under Node: reads tasks from standard input.

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

const [folder] = process.argv.slice(2);
const load = (name) => import(`${pathToFileURL(folder)}/${name}.js`);
const [{ openTable }, { label }, { readModel }, { labelsCsv }, { contributions }] = await Promise.all(
  ["tables", "predict", "model", "csv", "votes"].map(load),
);

const { model, words, tasks } = JSON.parse(readFileSync(0, "utf-8"));
const fitted = readModel(JSON.parse(gunzipSync(Buffer.from(model, "base64"))));
const results = [];
for (const { path, options } of tasks) {
  try {
    const file = new File([readFileSync(path)], basename(path));
    const source = await openTable(file, fitted, options, () => {});
    const labels = await label(source, fitted, words, options);
    const { notes, alarms, record, probabilities, panel, values } = labels;
    results.push({
      notes,
      alarms,
      record,
      probabilities: Array.from(probabilities),
      csv: labelsCsv(labels).join(""),
      explained: contributions(values.subarray(0, panel.present.length), panel, labels.chosen[0]),
    });
  } catch (error) {
    results.push({ error: error.message, stack: error.stack });
  }
}
process.stdout.write(JSON.stringify(results));
