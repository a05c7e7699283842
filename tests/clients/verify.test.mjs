// SPDX-License-Identifier: Apache-2.0
// Receipts judged by the library: the project's vectors, and side by side with "brig verify".

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";

import { canonicalize, receiptFault, verifyReceipts } from "../../sdk/typescript/dist/index.js";
import { parseStrict } from "../../sdk/typescript/dist/canonical.js";
import { trustKey } from "../../sdk/typescript/dist/ed25519.js";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");
const vectors = "tests/vectors/receipt/";
const key = read(vectors + "public.pem");
const head = read(vectors + "head.json");
const lines = read(vectors + "chain.jsonl").trimEnd().split("\n");
const bytesOfHex = (hex) => new Uint8Array(Buffer.from(hex, "hex"));

test("canonical JSON is that of the vectors", () => {
  for (const name of readdirSync(new URL("tests/vectors/json-canonical/", root)).filter((n) => n.endsWith(".json"))) {
    const wanted = read(`tests/vectors/json-canonical/${name.replace(/json$/, "canonical")}`);
    assert.equal(canonicalize(JSON.parse(read(`tests/vectors/json-canonical/${name}`))), wanted.trimEnd(), name);
  }
  for (const bad of ["\ud800", NaN, undefined, [1n], () => 0]) assert.throws(() => canonicalize(bad), TypeError);
  assert.equal(canonicalize(-0), "0");
});

test("the reader is strict, and knows what was only cut off", () => {
  const good = '{"a":[1,-2,0,true,false,{}],"b":"\\u00e9\\n","__proto__":"x"}';
  assert.equal(canonicalize(parseStrict(Buffer.from(good))), '{"__proto__":"x","a":[1,-2,0,true,false,{}],"b":"é\\n"}');
  const verdict = (bytes) => {
    try {
      parseStrict(bytes);
      return "good";
    } catch (error) {
      return error.incomplete ? "cut" : "wrong";
    }
  };
  for (const bad of ['{"a":1,"a":2}', "1.5", "1e3", "01", "-", "9007199254740992", "null", '"\\x"', '"\\ud800"', '"a\tb"',
    "[1,]", "{1:2}", "[1] 2", "tru3", "[".repeat(100) + "]".repeat(100), "\ufeff1"])
    assert.equal(verdict(Buffer.from(bad)), bad === "-" ? "cut" : "wrong", bad);
  assert.equal(verdict(Buffer.from([0x22, 0xff, 0x22])), "wrong");
  for (const whole of [good, '{"ü":"€𝄞"}']) {
    const bytes = Buffer.from(whole);
    for (let n = 1; n < bytes.length; n++) assert.equal(verdict(bytes.subarray(0, n)), "cut", `${n} of ${whole}`);
  }
});

test("signatures count by the documented rule", async () => {
  const hex = '"([0-9a-f]{64})",\\s*';
  const cases = read("tests/unit/lib/crypto/sign-test.c").matchAll(
    new RegExp(`\\{"([^"]+)",\\s*${hex}${hex}${hex}${hex}(true|false)\\s*\\}`, "g"));
  let n = 0;
  for (const [, what, message, publicKey, r, s, holds] of cases) {
    n++;
    const held = await trustKey(publicKey).then((k) => k.holds(bytesOfHex(r + s), bytesOfHex(message)), () => false);
    assert.equal(String(held), holds, what);
  }
  assert.equal(n, 12);
  for (const bad of ["", "00".repeat(32), "zz".repeat(32), new Uint8Array(31), read(vectors + "key")])
    await assert.rejects(trustKey(bad), TypeError);
});

test("the vectors hold, by every way to hand them in", async () => {
  const text = lines.join("\n") + "\n";
  const pieces = async function* () {
    for (let i = 0; i < text.length; i += 100) yield text.slice(i, i + 100);
  };
  for (const source of [text, Buffer.from(text), pieces(), new Blob([text]).stream(), lines.map((line) => JSON.parse(line))]) {
    const report = await verifyReceipts(source, { key, head });
    assert.deepEqual(
      [report.ok, report.integrity, report.completeness, report.entries, report.last_hash],
      [true, "intact", "proven", 5, JSON.parse(head).head_hash]);
  }
  assert.equal((await verifyReceipts(text, { key, head: JSON.parse(head) })).completeness, "proven");
  assert.equal((await verifyReceipts(text, { key })).completeness, "not proven");
  assert.equal(await receiptFault(lines[0], key), undefined);
  assert.equal(await receiptFault(JSON.parse(lines[0]), key), undefined);
  assert.match(await receiptFault({ ...JSON.parse(lines[0]), principal: "x" }, key), /does not match its hash/);
  const reordered = Object.fromEntries(Object.entries(JSON.parse(lines[0])).reverse());
  assert.equal(await receiptFault(JSON.stringify(reordered, null, 1).replaceAll("\n", " "), key), undefined);
});

const flip = (line) => line.replace(/"signature":"(.)/, (_, c) => `"signature":"${c === "0" ? "1" : "0"}`);
const ways = {
  "nothing": lines,
  "an entry was changed": lines.with(2, lines[2].replace('"verdict":"', '"verdict":"X')),
  "a signature was changed": lines.with(1, flip(lines[1])),
  "a hash was changed": lines.with(1, lines[1].replace("sha256:", "sha256:0").replace(/("hash":"sha256:.{64})./, "$1")),
  "an entry is missing": lines.toSpliced(2, 1),
  "the first is missing": lines.slice(1),
  "the last is missing": lines.slice(0, -1),
  "two are missing": lines.toSpliced(1, 2),
  "two changed places": [lines[0], lines[2], lines[1], lines[3], lines[4]],
  "the first is last": [...lines.slice(1), lines[0]],
  "one stands twice": [...lines.slice(0, 3), ...lines.slice(2)],
  "all stand twice": [...lines, ...lines],
  "a member was added": lines.with(3, lines[3].replace("{", '{"zzz":1,')),
  "a member stands twice": lines.with(3, lines[3].replace("{", '{"v":1,')),
  "a line is no JSON": lines.with(1, "{"),
  "a line is empty": lines.toSpliced(1, 0, ""),
  "a line is no receipt": lines.with(0, "[]"),
  "a head stands among them": [...lines, head.trimEnd()],
  "another key": lines.with(1, lines[1].replace(/ed25519:.{16}/, "ed25519:0123456789abcdef")),
  "a float": lines.with(1, lines[1].replace('"v":1', '"v":1.0')),
  "nothing at all": [],
};

/* What both say, as far as both say it. */
const gist = ({ ok, integrity, completeness, entries, open_runs, last_seq, fault }) =>
  ({ ok, integrity, completeness, entries, open_runs, last_seq,
    kind: fault?.kind, seq: fault?.seq, receipt_id: fault?.receipt_id, line: fault?.line });

function byBrig(text, withHead, part) {
  const options = [...(withHead ? ["--head", "head"] : []), ...(part ? ["--part"] : [])];
  writeFileSync("export", text);
  writeFileSync("head", head);
  writeFileSync("key", key);
  const done = spawnSync(process.env.BRIG, ["verify", "--json", "--key", "key", ...options, "export"], { encoding: "utf8" });
  assert.ok([0, 76].includes(done.status), done.stderr);
  return JSON.parse(done.stdout);
}

test("every fault is named as brig verify names it", async () => {
  for (const [way, list] of Object.entries(ways))
    for (const withHead of [false, true])
      for (const part of [false, true]) {
        const text = list.map((line) => `${line}\n`).join("");
        const ours = await verifyReceipts(text, withHead ? { key, head, part } : { key, part });
        assert.deepEqual(gist(ours), gist(byBrig(text, withHead, part)), `${way}, head ${withHead}, part ${part}: ${ours.fault?.text}`);
      }
});

test("a cut is told from a change, wherever it is", async () => {
  const text = lines.join("\n") + "\n";
  const last = lines.slice(0, 4).join("\n").length + 1;
  for (let n = last; n < text.length; n += 37) {
    const ours = await verifyReceipts(text.slice(0, n), { key });
    const theirs = byBrig(text.slice(0, n), false, false);
    assert.deepEqual(gist(ours), gist(theirs), `${n} of ${text.length}`);
  }
  const garbage = await verifyReceipts(text + "{]", { key });
  assert.equal(garbage.fault.kind, "changed");
});

test("a head that is none is refused", async () => {
  const text = lines.join("\n") + "\n";
  for (const bad of ["{}", lines[0], head.replace('"count":5', '"count":6'), flip(head), "not JSON"])
    await assert.rejects(verifyReceipts(text, { key, head: bad }), { name: "IntegrityError" });
});
