// SPDX-License-Identifier: Apache-2.0
// Made the files beside it; shares no code with Brig. Run: node make.mjs
//
// The seed is the bytes 00 01 … 1f, so everything here can be recomputed from this file.
import {createHash, createPrivateKey, createPublicKey, sign} from 'node:crypto';
import {writeFileSync} from 'node:fs';

const seed = Buffer.from([...Array(32).keys()]);
const key = createPrivateKey({
  key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]),
  format: 'der',
  type: 'pkcs8',
});
const spki = createPublicKey(key).export({format: 'der', type: 'spki'});
const keyId = 'ed25519:' + createHash('sha256').update(spki.subarray(12)).digest('hex').slice(0, 16);

// RFC 8785 for what receipts contain: JavaScript's own number and string forms, sorted members.
const canonical = (v) =>
  Array.isArray(v) ? '[' + v.map(canonical).join(',') + ']'
  : v && typeof v === 'object'
    ? '{' + Object.keys(v).sort().map((k) => JSON.stringify(k) + ':' + canonical(v[k])).join(',') + '}'
    : JSON.stringify(v);

const hashOf = (text) => 'sha256:' + createHash('sha256').update(text).digest('hex');
const seal = (body) => {
  const digest = createHash('sha256')
    .update('brig/receipt/1\0').update(canonical(body)).digest();
  return {...body, hash: 'sha256:' + digest.toString('hex'),
          signature: sign(null, digest, key).toString('hex')};
};

let prev = 'sha256:' + '0'.repeat(64);
let seq = 0;
const chain = [];
const append = (members) => {
  seq++;
  const entry = seal({
    v: 1, key_id: keyId, seq, lamport_clock: seq, prev_hash: prev,
    receipt_id: 'vector' + String(seq).padStart(14, '0'),
    timestamp: `2026-01-02T03:04:0${seq}.000000Z`, ...members});
  prev = entry.hash;
  chain.push(entry);
};
const run = (n) => ({
  decision_id: 'decision' + n, effect_id: 'effect' + n, run_id: 'run' + n,
  sandbox_id: 'sandbox' + n, session_id: 'session1', tenant: 'default', principal: 'uid:1000',
  provider: 'mock', isolation: 'none', mock: true,
  policy_hash: hashOf('policy'), request_hash: hashOf('request' + n)});

append({kind: 'denial', ...run(1), status: 'DENIED', verdict: 'DENY', reason_code: 'POLICY_DENY',
        // what RFC 8785 is easily got wrong with
        rule: 'Prüfung "€" \\ \u0007 \u2028 😀', rule_line: 7});
append({kind: 'intent', ...run(2), status: 'APPROVED', verdict: 'ALLOW',
        reason_code: 'POLICY_ALLOW', rule: 'anything', rule_line: 3,
        posture: {evidence: 'planned', degraded: [], provider_version: 'mock/1',
                  sandbox_spec_hash: hashOf('spec'), image_digest: hashOf('image'),
                  mounts_hash: hashOf('mounts'), egress_policy_hash: hashOf('egress'),
                  resource_limits_hash: hashOf('limits'), preimage_hash: hashOf('preimage')},
        limits: {wall_ms: {value: 30000, means: 'relay', origin: 'default'}}});
append({kind: 'outcome', ...run(2), status: 'APPROVED', verdict: 'ALLOW',
        reason_code: 'POLICY_ALLOW', intent_id: chain[1].receipt_id,
        outcome: {started: true, ended: true, exit_code: 0, signal: 0, timed_out: false,
                  oom_killed: false, stdout_bytes: 6, stdout_hash: hashOf('Hello\n'),
                  stderr_bytes: 0, stderr_hash: hashOf(''), stdin_bytes: 0, truncated: false,
                  output_hash: hashOf(hashOf('Hello\n') + '|' + hashOf('')),
                  duration_us: 1234, cpu_us: 0, peak_memory_bytes: 0,
                  egress: {requests: 0, refused: 0, bytes_out: 0, bytes_in: 0}}});
append({kind: 'intent', ...run(3), status: 'APPROVED', verdict: 'ALLOW',
        reason_code: 'POLICY_DEFAULT_ALLOW'});
append({kind: 'outcome', ...run(3), status: 'APPROVED', verdict: 'ALLOW',
        reason_code: 'RUN_ABANDONED', intent_id: chain[3].receipt_id, outcome: {ended: false}});
const head = seal({v: 1, kind: 'head', key_id: keyId, seq, count: seq, head_hash: prev,
                   timestamp: '2026-01-02T03:05:00.000000Z'});

const {hash, signature, ...firstBody} = chain[0];
const put = (name, text) => writeFileSync(new URL(name, import.meta.url), text);
put('key', 'brig-ed25519-v1:' + seed.toString('hex') + '\n');
put('public.pem', createPublicKey(key).export({format: 'pem', type: 'spki'}));
put('first-body.json', canonical(firstBody));
put('first-hash', hash + '\n');
put('first-signature', signature + '\n');
put('chain.jsonl', chain.map((entry) => canonical(entry) + '\n').join(''));
put('head.json', canonical(head) + '\n');
