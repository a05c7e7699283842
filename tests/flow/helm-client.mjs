// SPDX-License-Identifier: Apache-2.0
// Plays HELM's clients against a daemon, in the exact shape they speak: the TypeScript SDK, the
// Mastra adapter, and the Python adapters. Usage: node helm-client.mjs URL TOKEN SCENARIO
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';

const [url, token, scenario] = process.argv.slice(2);
const auth = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
export const sha256 = (bytes) => 'sha256:' + createHash('sha256').update(bytes).digest('hex');

export const HEADERS = ['Receipt-ID', 'Status', 'Output-Hash', 'Lamport-Clock', 'Reason-Code', 'Decision-ID', 'ProofGraph-Node', 'Signature', 'Tool-Calls'];

export async function send(method, path, body, headers = auth) {
    const response = await fetch(url + path, { method, headers, body: body === undefined || typeof body === 'string' || body instanceof Uint8Array || body instanceof FormData ? body : JSON.stringify(body) });
    const bytes = Buffer.from(await response.arrayBuffer());
    const governance = Object.fromEntries(HEADERS.map((name) => [name, response.headers.get('X-Helm-' + name)]));
    let json = null;
    try {
        json = JSON.parse(bytes.toString());
    } catch {}
    return { status: response.status, type: response.headers.get('content-type'), headers: response.headers, governance, bytes, json };
}

export function chat(content, more = {}) {
    return send('POST', '/v1/chat/completions', {
        model: 'helm-governance',
        messages: [{ role: 'user', content: typeof content === 'string' ? content : JSON.stringify(content) }],
        tools: [{ type: 'function', function: { name: 'sandbox_exec', description: 'x', parameters: { type: 'object', properties: { command: { type: 'array', items: { type: 'string' } } } } } }],
        ...more,
    });
}

export const execIntent = (sandbox_id, command, env) => chat({ type: 'sandbox_exec_intent', provider: 'daytona', sandbox_id, command, env });
export const toolIntent = (tool, args) => chat({ type: 'tool_call_intent', tool, arguments: args });

// What the adapters take for a yes.
export function isAllowed(answer) {
    if (answer.status < 200 || answer.status > 299) return false;
    if (['DENIED', 'PEP_VALIDATION_FAILED'].includes(answer.governance.Status)) return false;
    const choice = answer.json.choices[0];
    return choice.finish_reason !== 'stop' && (choice.message.tool_calls ?? []).length > 0;
}

function checkHeaders(answer, status) {
    for (const name of HEADERS) assert.ok(answer.governance[name], `X-Helm-${name} is missing`);
    assert.equal(answer.governance.Status, status);
    assert.equal(answer.governance['Output-Hash'], sha256(answer.bytes));
    assert.match(answer.governance['Lamport-Clock'], /^[1-9][0-9]*$/);
    assert.match(answer.governance.Signature, /^[0-9a-f]{128}$/);
    assert.match(answer.governance['ProofGraph-Node'], /^sha256:[0-9a-f]{64}$/);
}

function checkRefused(answer, status, reason) {
    assert.equal(answer.status, status, answer.bytes.toString());
    assert.equal(answer.governance.Status, 'DENIED');
    assert.ok(answer.json.error.message && answer.json.error.type && answer.json.error.code);
    if (reason) assert.equal(answer.json.error.reason_code, reason);
}

const create = async () => (await send('POST', '/sandbox', { language: 'python3', timeout: 30 })).json.sandboxId;
const execute = (id, command, more = {}) => send('POST', `/sandbox/${id}/process/execute`, { command, timeout: 30, ...more });
const receipt = async (id) => (await send('GET', `/v1/receipts/${id}`)).json;

// Signs what waits, with the key of a file.
async function custodian(file) {
    const { createPrivateKey, createPublicKey, sign } = await import('node:crypto');
    const secret = createPrivateKey((await import('node:fs')).readFileSync(file));
    const publicKey = createPublicKey(secret).export({ type: 'spki', format: 'der' }).subarray(-32);
    return (waits, change = {}) => {
        const preimage = createHash('sha256').update(`brig/approval/1\0confirm\0${waits.approval_id}\0${waits.intent_hash}`).digest();
        return send('POST', '/api/v1/kernel/approve', { intent_hash: waits.intent_hash, signature_b64: sign(null, preimage, secret).toString('base64'), public_key_b64: publicKey.toString('base64'), challenge_response: null, ...change });
    };
}

const scenarios = {
    // ---- questions ----
    async allowed() {
        const answer = await toolIntent('send_mail', { to: 'a@b', n: 1 });
        assert.equal(answer.status, 200);
        checkHeaders(answer, 'APPROVED');
        assert.ok(isAllowed(answer));
        assert.equal(answer.governance['Reason-Code'], 'ALLOW');
        assert.equal(answer.governance['Tool-Calls'], '1');
        assert.equal(answer.json.object, 'chat.completion');
        const [choice] = answer.json.choices;
        assert.equal(choice.finish_reason, 'tool_calls');
        assert.equal(choice.message.tool_calls[0].function.name, 'send_mail');
        assert.deepEqual(JSON.parse(choice.message.tool_calls[0].function.arguments), { to: 'a@b', n: 1 });
        const kept = await receipt(answer.governance['Receipt-ID']);
        assert.equal(kept.kind, 'decision');
        assert.equal(kept.tool, 'send_mail');
        assert.equal(kept.args_hash, sha256('{"n":1,"to":"a@b"}'));
        assert.equal(kept.hash, answer.governance['ProofGraph-Node']);
        assert.equal(kept.signature, answer.governance.Signature);
        assert.equal(kept.decision_id, answer.governance['Decision-ID']);
        const text = await chat(JSON.stringify({ type: 'tool_call_intent', tool: 't', arguments: '{"a":[1]}' }));
        assert.ok(isAllowed(text));
        const parts = await send('POST', '/v1/chat/completions', { model: 'helm-governance', messages: [{ role: 'user', content: [{ type: 'text', text: '{"type":"tool_call_intent","tool":"t","arguments":{}}' }] }] });
        assert.ok(isAllowed(parts));
        const elsewhere = await execIntent('not-ours', ['echo', 'hi']);
        assert.ok(isAllowed(elsewhere));
        assert.deepEqual(JSON.parse(elsewhere.json.choices[0].message.tool_calls[0].function.arguments), { command: ['echo', 'hi'] });
    },

    // Questions of all kinds at once: each has its own answer and its own receipt.
    async crowd() {
        const kinds = [
            [() => toolIntent('search', { q: 'x' }), (answer) => isAllowed(answer)],
            [() => toolIntent('delete_all', { x: 1 }), (answer) => !isAllowed(answer) && answer.governance['Reason-Code'] === 'DENY_POLICY_VIOLATION'],
            [() => execIntent('not-ours', ['echo', 'hi']), (answer) => isAllowed(answer)],
            [() => toolIntent('shell', { command: ['git', 'push'] }), (answer) => !isAllowed(answer) && answer.json.helm.approval_id],
            [() => chat('{'), (answer) => answer.status === 400],
            [() => send('POST', '/v1/tools/evaluate', { tool_name: 'search', arguments: { q: 1 }, principal: 'agent', args_hash: sha256('{"q":1}') }), (answer) => answer.json.verdict === 'ALLOW'],
            [() => chat('x', { model: 'another' }), (answer) => answer.status === 503], // nobody is asked, so nothing is recorded
        ];
        const answers = await Promise.all(Array.from({ length: 350 }, (_, i) => kinds[i % kinds.length][0]()));
        answers.forEach((answer, i) => assert.ok(kinds[i % kinds.length][1](answer), `${i}: ${answer.status} ${answer.bytes}`));
        const recorded = answers.filter((answer) => answer.status !== 503);
        for (const header of ['Receipt-ID', 'Lamport-Clock', 'Decision-ID', 'Signature']) {
            assert.ok(recorded.every((answer) => answer.governance[header]), header);
            assert.equal(new Set(recorded.map((answer) => answer.governance[header])).size, recorded.length, header);
        }
    },

    async denied() {
        for (const answer of [await toolIntent('delete_all', { x: 1 }), await toolIntent('shell', { command: ['rm', '-rf', '/'] }),
            await toolIntent('shell', { cmd: 'echo x; rm -rf /' }), await toolIntent('shell', { command: 'ls', cmd: 'rm -rf /' }), await execIntent('x', ['rm', 'a'])]) {
            assert.equal(answer.status, 200);
            checkHeaders(answer, 'DENIED');
            assert.ok(!isAllowed(answer));
            assert.equal(answer.json.choices[0].finish_reason, 'stop');
            assert.equal(answer.json.choices[0].message.tool_calls, undefined);
            assert.match(answer.json.choices[0].message.content, /Denied/);
            assert.equal(answer.governance['Reason-Code'], 'DENY_POLICY_VIOLATION');
            assert.equal(answer.governance['Tool-Calls'], '0');
            assert.equal((await receipt(answer.governance['Receipt-ID'])).kind, 'denial');
        }
        // What a shell would make of this text cannot be seen, so a person would have to say.
        for (const args of [{ command: ['git', 'push'] }, { cmd: 'echo x; $TOOL -rf /' }]) {
            const ask = await toolIntent('shell', args);
            checkHeaders(ask, 'DENIED');
            assert.ok(!isAllowed(ask));
            assert.equal(ask.governance['Reason-Code'], 'DENY_APPROVAL_REQUIRED');
        }
    },

    async frozen() {
        const answer = await toolIntent('search', {});
        checkHeaders(answer, 'DENIED');
        assert.ok(!isAllowed(answer));
        assert.equal((await receipt(answer.governance['Receipt-ID'])).reason_code, 'SYSTEM_FROZEN');
    },

    async malformed() {
        const good = { type: 'tool_call_intent', tool: 't', arguments: {} };
        const cases = [
            'not json',
            '{"type":"tool_call_intent"',
            '[]',
            '{}',
            { ...good, type: 'other' },
            { ...good, extra: 1 },
            { ...good, arguments: 'no' },
            { ...good, arguments: [] },
            { ...good, tool: '' },
            { ...good, tool: 'a b' },
            '{"type":"tool_call_intent","tool":"a","tool":"b","arguments":{}}',
            { type: 'sandbox_exec_intent', sandbox_id: 'x', command: [] },
            { type: 'sandbox_exec_intent', sandbox_id: 'x', command: 'ls' },
            { type: 'sandbox_exec_intent', sandbox_id: 'x', command: ['ls', 1] },
            { type: 'sandbox_exec_intent', sandbox_id: 'x', command: ['a\u0000b'] },
            { type: 'sandbox_exec_intent', sandbox_id: 'x', command: ['ls'], env: { 'A=B': '1' } },
            { type: 'sandbox_exec_intent', command: ['ls'] },
        ];
        for (const content of cases) {
            const answer = await chat(content);
            checkRefused(answer, 400, 'DENY_SCHEMA_MISMATCH');
            checkHeaders(answer, 'DENIED');
            const kept = await receipt(answer.governance['Receipt-ID']);
            assert.equal(kept.kind, 'denial');
            assert.equal(kept.reason_code, 'REQUEST_INVALID');
        }
        const two = { model: 'helm-governance', messages: [{ role: 'user', content: JSON.stringify(good) }, { role: 'user', content: JSON.stringify(good) }] };
        for (const body of ['{', '[]', '{}', JSON.stringify(two), JSON.stringify({ model: 'helm-governance', messages: [{ role: 'assistant', content: JSON.stringify(good) }] }), JSON.stringify({ ...two, messages: two.messages.slice(1), stream: true })]) {
            const answer = await send('POST', '/v1/chat/completions', body);
            checkRefused(answer, 400, 'DENY_SCHEMA_MISMATCH');
            assert.ok(answer.governance['Receipt-ID']);
        }
        checkRefused(await send('POST', '/v1/chat/completions', '{}', { Authorization: 'Bearer wrong' }), 401);
        checkRefused(await chat('x', { model: 'gpt-other' }), 503, 'UPSTREAM_MISSING');
    },

    // ---- tools ----
    async evaluate() {
        const ask = (tool_name, args, args_hash = sha256(JSON.stringify(args)), more = {}) => send('POST', '/v1/tools/evaluate', { tool_name, arguments: args, principal: 'agent', args_hash, ...more });
        const yes = await ask('search', { a: 1, b: 'x' }, undefined, { metadata: { run: 1 } });
        assert.deepEqual(yes.json, { verdict: 'ALLOW', reason_code: 'ALLOW' });
        checkHeaders(yes, 'APPROVED');
        // As Python writes it: sorted, escaped, numbers as they are.
        const python = await send('POST', '/v1/tools/evaluate', `{"tool_name":"t","arguments":{"z":1.0,"\\u00e9":"\\ud83d\\ude00\\n"},"principal":"p","args_hash":"${sha256('{"z":1.0,"\\u00e9":"\\ud83d\\ude00\\n"}')}"}`);
        assert.equal(python.json.verdict, 'ALLOW');
        const no = await ask('delete_all', {});
        assert.deepEqual(no.json, { verdict: 'DENY', reason_code: 'DENY_POLICY_VIOLATION' });
        checkHeaders(no, 'DENIED');
        const other = await ask('search', { a: 2 }, sha256('{"a":1}'));
        assert.deepEqual(other.json, { verdict: 'DENY', reason_code: 'DENY_SCHEMA_MISMATCH' });
        assert.equal((await receipt(other.governance['Receipt-ID'])).reason_code, 'ARGS_HASH_MISMATCH');
        for (const body of [{}, { tool_name: 't', arguments: {} }, { tool_name: 't', arguments: [], args_hash: sha256('[]') }, { tool_name: 't', arguments: {}, args_hash: sha256('{}'), surprise: 1 }]) {
            const answer = await send('POST', '/v1/tools/evaluate', body);
            assert.equal(answer.status, 400);
            assert.equal(answer.governance.Status, 'DENIED');
        }
    },

    // ---- the Mastra adapter ----
    async mastra() {
        const id = await create();
        assert.ok(id);
        const path = encodeURIComponent('/sandbox/tmp/a b.txt');
        const bytes = new Uint8Array([0, 255, 10, 65]);
        assert.equal((await send('PUT', `/sandbox/${id}/filesystem?path=${path}`, bytes)).status, 200);
        assert.deepEqual((await send('GET', `/sandbox/${id}/filesystem?path=${path}`)).bytes, Buffer.from(bytes));
        assert.equal((await send('GET', `/sandbox/${id}/filesystem?path=%2Fnowhere`)).status, 404);

        // What an agent may write as one argument stays one argument.
        const argv = ['printf', '%s|', 'a; echo INJECTED', '$(id)', "it's", ''];
        const approved = await execIntent(id, argv);
        assert.ok(isAllowed(approved));
        const ran = await execute(id, argv.join(' '));
        assert.equal(ran.status, 200);
        assert.deepEqual(Object.keys(ran.json), ['output', 'errors', 'exitCode', 'timedOut', 'durationMs']);
        assert.equal(ran.json.output, "a; echo INJECTED|$(id)|it's||");
        assert.equal(ran.json.exitCode, 0);
        assert.equal(ran.json.timedOut, false);
        assert.equal(ran.governance.Status, 'APPROVED');

        // Once.
        const again = await execute(id, argv.join(' '));
        checkRefused(again, 403, 'DENY_APPROVAL_REQUIRED');
        assert.equal((await receipt(again.governance['Receipt-ID'])).reason_code, 'NOT_APPROVED');
        // Never asked about.
        checkRefused(await execute(id, 'id'), 403, 'DENY_APPROVAL_REQUIRED');
        checkRefused(await execute(id, "sh -c 'id'"), 403);

        // Exit codes, standard error, bytes that are no text, time.
        await execIntent(id, ['sh', '-c', 'printf "\\377ok"; echo bad >&2; exit 3']);
        const odd = await execute(id, 'sh -c printf "\\377ok"; echo bad >&2; exit 3');
        assert.equal(odd.json.exitCode, 3);
        assert.equal(odd.json.output, '\ufffdok');
        assert.equal(odd.json.errors, 'bad\n');
        await execIntent(id, ['sleep', '60']);
        const late = await execute(id, 'sleep 60', { timeout: 1 });
        assert.equal(late.json.timedOut, true);

        assert.equal((await send('DELETE', `/sandbox/${id}`)).status, 200);
        assert.equal((await execute(id, 'id')).status, 404);
    },

    async bound() {
        const id = await create();
        // The environment is part of what was approved, in any order.
        assert.ok(isAllowed(await execIntent(id, ['env'], { B: '2', A: '1' })));
        checkRefused(await execute(id, 'env'), 403);
        checkRefused(await execute(id, 'env', { env: { A: '1', B: '3' } }), 403);
        checkRefused(await execute(id, 'env', { env: { A: '1', B: '2' }, cwd: '/usr' }), 403);
        const ran = await execute(id, 'env', { env: { A: '1', B: '2' } });
        assert.match(ran.json.output, /^A=1$/m);
        assert.match(ran.json.output, /^B=2$/m);
        // A working directory and a time that the question named must be the same.
        const where = { type: 'sandbox_exec_intent', sandbox_id: id, command: ['pwd'], cwd: '/usr', timeout: 5 };
        assert.ok(isAllowed(await chat(where)));
        checkRefused(await execute(id, 'pwd', { timeout: 5 }), 403);
        checkRefused(await execute(id, 'pwd', { cwd: '/', timeout: 5 }), 403);
        checkRefused(await execute(id, 'pwd', { cwd: '/usr', timeout: 6 }), 403);
        assert.equal((await execute(id, 'pwd', { cwd: '/usr', timeout: 5 })).json.output, '/usr\n');

        // Two vectors that read the same: neither runs.
        assert.ok(isAllowed(await execIntent(id, ['echo', 'a b'])));
        const second = await execIntent(id, ['echo', 'a', 'b']);
        checkRefused(second, 403);
        assert.equal((await receipt(second.governance['Receipt-ID'])).reason_code, 'APPROVAL_AMBIGUOUS');
        const neither = await execute(id, 'echo a b');
        checkRefused(neither, 403);
        assert.equal((await receipt(neither.governance['Receipt-ID'])).reason_code, 'APPROVAL_AMBIGUOUS');
        checkRefused(await execute(id, 'echo a b'), 403);
        // The same vector twice is two uses.
        await execIntent(id, ['echo', 'twice']);
        await execIntent(id, ['echo', 'twice']);
        assert.equal((await execute(id, 'echo twice')).json.output, 'twice\n');
        assert.equal((await execute(id, 'echo twice')).json.output, 'twice\n');
        checkRefused(await execute(id, 'echo twice'), 403);

        // What was approved for one sandbox does not run in another.
        const other = await create();
        await execIntent(id, ['id']);
        checkRefused(await execute(other, 'id'), 403);
        // There is an end to what may wait.
        let last;
        for (let i = 0; i < 65; i++) last = await execIntent(other, ['echo', `${i}`]);
        assert.equal(last.status, 429);
        assert.equal(last.governance.Status, 'DENIED');
        await send('DELETE', `/sandbox/${id}`);
        await send('DELETE', `/sandbox/${other}`);
    },

    // ---- the other operations of the SDK ----
    async proof() {
        const id = await create();
        await execIntent(id, ['echo', 'x']);
        await execute(id, 'echo x');
        await execute(id, 'never asked');
        const sessions = (await send('GET', '/api/v1/proofgraph/sessions?limit=50&offset=0')).json;
        const session = sessions.find((one) => one.session_id === id);
        assert.deepEqual(Object.keys(session), ['session_id', 'created_at', 'receipt_count', 'last_lamport_clock']);
        assert.equal(session.receipt_count, 6); // create, decision, run: two each but the decision; denial
        assert.equal((await send('GET', '/api/v1/proofgraph/sessions?limit=1&offset=1')).json.length, 1);
        const receipts = (await send('GET', `/api/v1/proofgraph/sessions/${id}/receipts`)).json;
        assert.equal(receipts.length, 6);
        for (const one of receipts) assert.deepEqual(Object.keys(one), ['receipt_id', 'decision_id', 'effect_id', 'status', 'reason_code', 'output_hash', 'blob_hash', 'prev_hash', 'lamport_clock', 'signature', 'timestamp', 'principal']);
        assert.equal(receipts.at(-1).status, 'DENIED');
        assert.equal(receipts.at(-1).reason_code, 'DENY_APPROVAL_REQUIRED');
        assert.equal(receipts.at(-1).lamport_clock, session.last_lamport_clock);
        const { hash } = await receipt(receipts[2].receipt_id);
        for (const name of [hash, encodeURIComponent(hash), hash.slice(7), receipts[2].receipt_id]) assert.deepEqual((await send('GET', `/api/v1/proofgraph/receipts/${name}`)).json, receipts[2]);
        checkRefused(await send('GET', `/api/v1/proofgraph/receipts/${'0'.repeat(64)}`), 404);
        checkRefused(await send('GET', '/api/v1/proofgraph/sessions/nobody/receipts'), 404);
        assert.deepEqual((await send('GET', '/healthz', undefined, { 'Content-Type': 'application/json' })).json, { status: 'ok', version: '' });
        assert.deepEqual(Object.keys((await send('GET', '/version')).json), ['version', 'commit', 'build_time', 'go_version']);
        await send('DELETE', `/sandbox/${id}`);
    },

    async evidence() {
        const { gunzipSync, gzipSync } = await import('node:zlib');
        const id = await create();
        await execIntent(id, ['echo', 'x']);
        await execute(id, 'echo x');
        const take = async (body) => (await send('POST', '/api/v1/evidence/export', body)).bytes;
        const check = async (bytes, path = '/api/v1/evidence/verify') => {
            const form = new FormData();
            form.append('bundle', new Blob([bytes]), 'pack.tar.gz');
            const answer = await send('POST', path, form, { Authorization: auth.Authorization });
            assert.equal(answer.status, 200, answer.bytes.toString());
            assert.deepEqual(Object.keys(answer.json), ['verdict', 'checks', 'errors']);
            assert.deepEqual(Object.keys(answer.json.checks), ['signatures', 'causal_chain', 'policy_compliance']);
            return answer.json;
        };
        for (const body of [{ session_id: id, format: 'tar.gz' }, { session_id: null, format: 'tar.gz' }]) {
            const bundle = await take(body);
            assert.deepEqual(await take(body), bundle); // the same bytes
            for (const path of ['/api/v1/evidence/verify', '/api/v1/replay/verify']) {
                const good = await check(bundle, path);
                assert.deepEqual(good, { verdict: 'PASS', checks: { signatures: 'PASS', causal_chain: 'PASS', policy_compliance: 'PASS' }, errors: [] });
            }
        }
        const bundle = await take({ session_id: id });
        const tar = gunzipSync(bundle);
        const again = (change) => {
            const copy = Buffer.from(tar);
            change(copy);
            return gzipSync(copy);
        };
        // Any byte of it.
        for (let i = 0; i < 40; i++) {
            const at = Math.floor((tar.length * i) / 40);
            const bad = await check(again((copy) => (copy[at] ^= 1)));
            assert.equal(bad.verdict, 'FAIL', `byte ${at}`);
            assert.ok(bad.errors.length > 0);
        }
        // A change with the index made to fit is found by the signature, and named.
        const fit = (from, to) => {
            let text = tar.toString('latin1').replace(from, to);
            const start = text.indexOf('02_PROOFGRAPH/receipts.jsonl\0');
            const size = parseInt(text.slice(start + 124, start + 135), 8);
            const lines = text.slice(start + 512, start + 512 + size);
            const old = tar.toString('latin1').slice(start + 512, start + 512 + size);
            const hex = (part) => createHash('sha256').update(Buffer.from(part, 'latin1')).digest('hex');
            text = text.replace(hex(old), hex(lines));
            return gzipSync(Buffer.from(text, 'latin1'));
        };
        const forged = await check(fit('"status":"APPROVED"', '"status":"APPROVEX"'));
        assert.equal(forged.verdict, 'FAIL');
        assert.equal(forged.checks.signatures, 'FAIL');
        assert.equal(forged.checks.causal_chain, 'PASS');
        assert.match(forged.errors[0], /^signatures: line \d+/);
        // A file that is named twice is not named by the other.
        const twice = await check(gzipSync(Buffer.from(tar.toString('latin1').replace('"path":"07_ATTESTATIONS/receipts.pub"', '"path":"02_PROOFGRAPH/receipts.jsonl"'), 'latin1')));
        assert.equal(twice.verdict, 'FAIL');
        for (const bytes of [Buffer.from('no'), gzipSync(Buffer.from('no')), bundle.subarray(0, bundle.length - 9), gzipSync(tar.subarray(0, 2048))]) assert.equal((await check(bytes)).verdict, 'FAIL');
        // Other ways in: a multipart body that calls itself JSON, and base64.
        const boundary = 'xyz';
        const body = Buffer.concat([Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="bundle"; filename="pack.tar.gz"\r\nContent-Type: application/octet-stream\r\n\r\n`), bundle, Buffer.from(`\r\n--${boundary}--\r\n`)]);
        assert.equal((await send('POST', '/api/v1/evidence/verify', body)).json.verdict, 'PASS');
        assert.equal((await send('POST', '/api/v1/evidence/verify', { bundle_b64: bundle.toString('base64') })).json.verdict, 'PASS');
        for (const nonsense of ['x', '{}', '--a\r\n\r\n', '--a--\r\n']) checkRefused(await send('POST', '/api/v1/evidence/verify', nonsense), 400);
        checkRefused(await send('POST', '/api/v1/evidence/export', { session_id: 'nobody' }), 404);
        checkRefused(await send('POST', '/api/v1/evidence/export', { format: 'zip' }), 400);
        await send('DELETE', `/sandbox/${id}`);
    },

    async conformance() {
        const answer = await send('POST', '/api/v1/conformance/run', { level: 'L1', profile: null });
        assert.equal(answer.status, 200, answer.bytes.toString());
        assert.deepEqual(Object.keys(answer.json), ['report_id', 'level', 'verdict', 'gates', 'failed', 'details']);
        assert.equal(answer.json.verdict, 'PASS', JSON.stringify(answer.json));
        assert.equal(answer.json.gates, 4);
        assert.equal(answer.json.details.deny_degraded, 'PASS');
        const kept = await send('GET', `/api/v1/conformance/reports/${answer.json.report_id}`);
        assert.deepEqual(kept.json, answer.json);
        checkRefused(await send('GET', '/api/v1/conformance/reports/nobody'), 404);
        checkRefused(await send('GET', '/api/v1/conformance/reports/..receipts'), 404);
        checkRefused(await send('POST', '/api/v1/conformance/run', { level: 'L9' }), 400);
    },

    // ---- a person's word ----
    async approve() {
        const approve = await custodian(process.argv[5]);
        const push = () => toolIntent('shell', { command: ['git', 'push'] });
        const first = await push();
        assert.equal(first.governance['Reason-Code'], 'DENY_APPROVAL_REQUIRED');
        const waits = first.json.helm;
        assert.match(waits.intent_hash, /^sha256:/);
        // The wrong signature, a key nobody knows, something else, nonsense.
        const wrong = await approve(waits, { signature_b64: Buffer.alloc(64, 1).toString('base64') });
        checkRefused(wrong, 403);
        assert.equal((await receipt(wrong.governance['Receipt-ID'])).kind, 'denial');
        checkRefused(await approve(waits, { public_key_b64: Buffer.alloc(32, 7).toString('base64') }), 403);
        checkRefused(await approve(waits, { intent_hash: sha256('other') }), 404);
        checkRefused(await approve(waits, { signature_b64: 'AA==' }), 400);
        checkRefused(await approve(waits, { intent_hash: 'x' }), 400);
        assert.ok(!isAllowed(await push()));
        const word = await approve(waits);
        assert.equal(word.status, 200, word.bytes.toString());
        assert.equal(Object.keys(word.json).length, 12);
        assert.equal(word.json.status, 'APPROVED');
        assert.match(word.json.principal, /^custodian:/);
        assert.ok(isAllowed(await push())); // exactly this, once
        assert.ok(!isAllowed(await push()));

        // A command: the word given to the question holds for the run that follows from it.
        const id = await create();
        const asked = await execIntent(id, ['git', 'push', '--dry-run']);
        assert.equal(asked.governance.Status, 'DENIED');
        checkRefused(await execute(id, 'git push --dry-run'), 403);
        assert.equal((await approve(asked.json.helm)).status, 200);
        assert.ok(isAllowed(await execIntent(id, ['git', 'push', '--dry-run'])));
        const ran = await execute(id, 'git push --dry-run');
        assert.equal(ran.status, 200, ran.bytes.toString());
        checkRefused(await execute(id, 'git push --dry-run'), 403);
        await send('DELETE', `/sandbox/${id}`);
    },

    // What was confirmed is bound by content, as everywhere else.
    async target() {
        const approve = await custodian(process.argv[5]);
        const id = await create();
        const write = async (text) => assert.equal((await send('PUT', `/sandbox/${id}/filesystem?path=/tmp/deploy.sh`, text)).status, 200);
        const ask = () => execIntent(id, ['sh', '/tmp/deploy.sh']);
        const run = (more) => execute(id, 'sh /tmp/deploy.sh', more);
        // Confirmed, asked again, and yes; the approval is what it has.
        const yes = async () => {
            const { helm } = (await ask()).json;
            assert.equal((await approve(helm)).status, 200);
            assert.ok(isAllowed(await ask()));
            return helm;
        };
        const changed = async (answer, what) => {
            checkRefused(answer, 403, 'DENY_APPROVAL_REQUIRED');
            assert.match(answer.json.error.message, what);
            const kept = await receipt(answer.governance['Receipt-ID']);
            assert.equal(kept.kind, 'denial');
            assert.equal(kept.reason_code, 'APPROVAL_TARGET_CHANGED');
            return kept;
        };

        await write('echo one\n');
        const first = await yes();
        const shown = (await send('GET', `/v1/approvals/${first.approval_id}`)).json;
        assert.equal(shown.subject.action, 'exec');
        assert.equal(shown.subject.operands[0].path, '/tmp/deploy.sh');
        assert.equal(shown.subject.operands[0].sha256, sha256('echo one\n'));
        assert.match(shown.subject.posture_hash, /^sha256:/);
        // Unchanged, and in less time than was asked for, it runs.
        const ran = await run({ timeout: 20 });
        assert.equal(ran.json.output, 'one\n', ran.bytes.toString());
        const kept = await receipt(ran.governance['Receipt-ID']);
        assert.equal(kept.approval.approval_id, first.approval_id);
        assert.equal(kept.approval.digest, first.intent_hash);

        // Changed behind the yes it does not, and the word is used up.
        const second = await yes();
        await write('echo two >/tmp/ran\n');
        const refused = await changed(await run(), /^\/tmp\/deploy.sh changed after it was confirmed/);
        assert.equal(refused.approval.approval_id, second.approval_id);
        await write('echo one\n');
        checkRefused(await run(), 403, 'DENY_APPROVAL_REQUIRED');
        assert.equal((await send('GET', `/sandbox/${id}/filesystem?path=/tmp/ran`)).status, 404);

        // Changed behind the word, the question is another one.
        const third = (await ask()).json.helm;
        assert.equal((await approve(third)).status, 200);
        await write('echo three\n');
        const anew = await ask();
        assert.ok(!isAllowed(anew));
        assert.notEqual(anew.json.helm.approval_id, third.approval_id);
        assert.match(anew.json.choices[0].message.content, /since approval .* this changed: \/tmp\/deploy.sh/);

        // As it was confirmed it may run, but not under other rules: those were part of it.
        await write('echo one\n');
        assert.ok(isAllowed(await ask()));
        const { execFileSync } = await import('node:child_process');
        execFileSync(process.env.BRIG, ['policy', 'ceiling', 'set', 'ceiling.yaml']);
        await changed(await run(), /^the policy, .* changed after it was confirmed/);
        await send('DELETE', `/sandbox/${id}`);
    },

    async nobodyApproves() {
        const { helm } = (await toolIntent('shell', { command: ['git', 'push'] })).json;
        checkRefused(await send('POST', '/api/v1/kernel/approve', { intent_hash: helm.intent_hash, signature_b64: Buffer.alloc(64).toString('base64'), public_key_b64: Buffer.alloc(32).toString('base64') }), 403);
    },

    // ---- the proxy ----
    async proxy() {
        const upstream = process.argv[5];
        const ask = (model, more = {}) => send('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'x' }], tools: [], temperature: 0.5, ...more });
        const text = await ask('text');
        assert.equal(text.status, 200, text.bytes.toString());
        assert.equal(text.json.choices[0].message.content, 'hi');
        assert.equal(text.json.choices[0].finish_reason, 'stop');
        assert.equal(text.json.usage.total_tokens, 3);
        assert.equal(text.json.secret_extension, undefined);
        checkHeaders(text, 'APPROVED');
        assert.equal(text.governance['Tool-Calls'], '0');
        // Our token stays here, theirs goes there, and the body is the one that was sent.
        const last = await (await fetch(upstream + '/last')).json();
        assert.equal(last.url, '/v1/chat/completions');
        assert.equal(last.headers.authorization, 'Bearer upstream-secret');
        assert.ok(!JSON.stringify(last).includes(token));
        assert.equal(JSON.parse(last.body).temperature, 0.5);

        const calls = await ask('calls');
        checkHeaders(calls, 'DENIED');
        assert.equal(calls.governance['Tool-Calls'], '1');
        assert.deepEqual(calls.json.choices[0].message.tool_calls, [{ id: 'c1', type: 'function', function: { name: 'search', arguments: '{"q":"x"}' } }]);
        assert.equal(calls.json.choices[0].finish_reason, 'tool_calls');
        assert.match(calls.json.choices[0].message.content, /delete_all was removed/);
        assert.equal((await receipt(calls.governance['Receipt-ID'])).tool, 'delete_all');

        const nothingLeft = (choice) => {
            assert.equal(choice.finish_reason, 'stop');
            assert.equal(choice.message.tool_calls, undefined);
            assert.equal(choice.message.function_call, undefined);
            assert.match(JSON.stringify(choice.message.content), /Denied by policy/);
        };
        for (const model of ['denied', 'legacy', 'parts', 'no-json-arguments', 'twice-named', 'inner-command']) {
            const answer = await ask(model);
            assert.equal(answer.status, 200, `${model}: ${answer.bytes}`);
            assert.equal(answer.governance.Status, 'DENIED');
            nothingLeft(answer.json.choices[0]);
            assert.ok(!answer.bytes.includes('"arguments"'), model);
        }
        const several = await ask('several');
        assert.equal(several.json.choices[0].message.tool_calls.length, 1);
        nothingLeft(several.json.choices[1]);
        assert.equal((await ask('legacy-good')).json.choices[0].message.function_call.name, 'search');
        const extension = await ask('extension');
        assert.deepEqual(Object.keys(extension.json.choices[0].message), ['role', 'content']);

        for (const model of ['odd-part', 'odd-kind', 'odd-calls', 'no-choices', 'no-message', 'other-type', 'zipped', 'not-json', 'closes', 'short', 'large', 'status-401']) {
            const answer = await ask(model);
            checkRefused(answer, 502, 'UPSTREAM_FAILED');
            assert.ok(!answer.bytes.includes('bad key'));
            assert.ok(!answer.bytes.includes('upstream-secret'));
        }
        const busy = await ask('status-429');
        checkRefused(busy, 429, 'UPSTREAM_FAILED');
        assert.match(busy.json.error.message, /slow down/);
        checkRefused(await ask('forbidden-model'), 403, 'DENY_POLICY_VIOLATION');
        checkRefused(await ask('text', { stream: 'yes' }), 400);
    },

    async proxyStream() {
        const upstream = process.argv[5];
        const ask = async (model) => {
            const answer = await send('POST', '/v1/chat/completions', { model, stream: true, messages: [] });
            const events = answer.bytes.toString().split('\n\n').filter(Boolean).map((event) => event.replace(/^data: /, ''));
            const done = events.at(-1) === '[DONE]';
            const chunks = events.filter((event) => event !== '[DONE]').map((event) => JSON.parse(event));
            const seen = {};
            for (const one of chunks)
                for (const { index, delta, finish_reason } of one.choices ?? []) {
                    const choice = (seen[index] ??= { content: '', calls: [], finish: null });
                    choice.content += delta.content ?? '';
                    for (const call of delta.tool_calls ?? []) {
                        const at = (choice.calls[call.index] ??= { id: '', name: '', arguments: '' });
                        at.id += call.id ?? '';
                        at.name += call.function.name ?? '';
                        at.arguments += call.function.arguments ?? '';
                    }
                    if (delta.function_call) choice.function = delta.function_call;
                    choice.finish = finish_reason ?? choice.finish;
                }
            return { answer, seen, done, chunks, error: chunks.find((one) => one.error)?.error };
        };
        const searched = [{ id: 'c1', name: 'search', arguments: '{"q":"x"}' }];
        const text = await ask('text');
        assert.equal(text.answer.status, 200);
        assert.match(text.answer.type, /^text\/event-stream/);
        assert.equal(text.answer.governance.Status, 'APPROVED');
        assert.ok(text.answer.governance['Receipt-ID']);
        assert.deepEqual(text.seen[0], { content: 'hi', calls: [], finish: 'stop' });
        assert.ok(text.done);

        const checkCalls = (got, what) => {
            assert.ok(got.done, what);
            assert.deepEqual(got.seen[0].calls, searched, what);
            assert.equal(got.seen[0].finish, 'tool_calls', what);
            assert.match(got.seen[0].content, /delete_all was removed/, what);
        };
        checkCalls(await ask('calls'), 'calls');
        const crlf = await ask('crlf');
        assert.deepEqual(crlf.seen[0].calls, searched);
        assert.equal((await ask('comments')).seen[0].content, 'x');
        const denied = await ask('denied');
        assert.deepEqual(denied.seen[0].calls, []);
        assert.equal(denied.seen[0].finish, 'stop');
        assert.match(denied.seen[0].content, /^so Denied by policy/);
        const legacy = await ask('legacy');
        assert.equal(legacy.seen[0].function, undefined);
        assert.equal(legacy.seen[0].finish, 'stop');
        const several = await ask('several');
        assert.deepEqual(several.seen[0].calls, searched);
        assert.deepEqual(several.seen[1].calls, []);
        assert.equal(several.seen[1].finish, 'stop');
        assert.equal((await ask('usage')).chunks.at(-1).usage.total_tokens, 3);
        assert.ok(!(await ask('extension')).answer.bytes.includes('delete_all'));

        // Wherever the bytes are cut.
        const { calls: length } = await (await fetch(upstream + '/lengths')).json();
        for (let at = 1; at < length; at += 1 + Math.floor(length / 150)) checkCalls(await ask(`calls@${at}`), `cut at ${at}`);

        for (const model of ['same-place', 'other-name', 'no-place', 'far-place', 'no-finish', 'cut-off', 'after-finish', 'no-json', 'odd-text', 'a-message', 'failure', 'long-line', 'endless-calls', 'endless-text']) {
            const got = await ask(model);
            assert.ok(!got.done, model);
            assert.equal(got.error?.reason_code, 'UPSTREAM_FAILED', model);
            for (const choice of Object.values(got.seen)) assert.deepEqual(choice.calls, [], model);
            assert.ok(!got.answer.bytes.includes('"arguments"'), model);
        }
        const late = await ask('after-done');
        assert.ok(late.error && !late.answer.bytes.includes('"arguments"'));
        checkRefused(await send('POST', '/v1/chat/completions', { model: 'other-type', stream: true, messages: [] }), 502, 'UPSTREAM_FAILED');
    },
};

if (scenarios[scenario]) await scenarios[scenario]();
else if (scenario) throw new Error(`no scenario ${scenario}`);
