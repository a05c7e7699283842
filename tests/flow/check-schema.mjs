// SPDX-License-Identifier: Apache-2.0
// check-schema.mjs OPENAPI FOLDER: each file OPERATION.STATUS[.NAME].json in the folder is a real answer. It is held
// against the document's schema for that operation and status, strictly: a member that the document does not know is a
// fault, too. Prints what is wrong, and which operations were seen.
import { readFileSync, readdirSync } from "node:fs";

const [, , documentPath, folder] = process.argv;
const document = JSON.parse(readFileSync(documentPath, "utf8"));
const operations = new Map();
for (const [path, item] of Object.entries(document.paths))
  for (const [method, operation] of Object.entries(item)) operations.set(operation.operationId, { path, method, operation });

const faults = [];
const resolve = (schema) => (schema.$ref ? resolve(schema.$ref.slice(2).split("/").reduce((at, part) => at[part], document)) : schema);
const typeOf = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : Number.isInteger(value) ? "integer" : typeof value);

function check(value, given, where) {
  const schema = resolve(given);
  if (!schema) return faults.push(`${where}: the document has no such schema`);
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length && !types.includes(typeOf(value))) return faults.push(`${where}: is ${typeOf(value)}, should be ${types.join(" or ")}`);
  if (schema.items) value.forEach((item, i) => check(item, schema.items, `${where}[${i}]`));
  if (typeOf(value) !== "object") return;
  for (const name of schema.required ?? []) if (!(name in value)) faults.push(`${where}: has no ${name}`);
  for (const [name, member] of Object.entries(value)) {
    const known = schema.properties?.[name] ?? schema.additionalProperties;
    if (known) check(member, known, `${where}.${name}`);
    else if (schema.properties) faults.push(`${where}: ${name} is not in the document`);
  }
}

const seen = new Set();
for (const file of readdirSync(folder).filter((name) => name.endsWith(".json"))) {
  const [name, status] = file.split(".");
  const found = operations.get(name);
  const schema = found?.operation.responses[status]?.content?.["application/json"]?.schema ?? (status >= 400 ? resolve(found.operation.responses.default).content["application/json"].schema : undefined);
  if (!schema) {
    faults.push(`${file}: the document does not know this answer`);
    continue;
  }
  seen.add(name);
  check(JSON.parse(readFileSync(`${folder}/${file}`, "utf8")), schema, file);
}
for (const fault of faults) console.error(fault);
// Every operation of the native API that answers with a shape of its own must have been seen.
for (const [name, { path, operation }] of operations) {
  const shaped = Object.values(operation.responses).some((r) => r.content?.["application/json"]?.schema?.$ref);
  if (shaped && !seen.has(name)) console.log(`${name} ${path}`);
}
process.exit(faults.length ? 1 : 0);
