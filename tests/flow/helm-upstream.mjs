// SPDX-License-Identifier: Apache-2.0
// A model that says what its name asks for, well-behaved or not. Prints its port. GET /last tells
// the headers and body of the last request.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';

// With a certificate and a key it speaks TLS.
const [cert, key] = process.argv.slice(2);

let last = null;
const call = (id, name, args, more = {}) => ({ id, type: 'function', function: { name, arguments: args }, ...more });
const whole = (choices) => ({ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm', secret_extension: { tool_calls: [call('x', 'rm', '{}')] }, choices, usage: { total_tokens: 3 } });
const answer = (message, finish_reason = 'tool_calls') => ({ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason });
const good = call('c1', 'search', '{"q":"x"}');
const bad = call('c2', 'delete_all', '{}');

const answers = {
    text: () => whole([answer({ content: 'hi' }, 'stop')]),
    calls: () => whole([answer({ tool_calls: [good, bad] })]),
    denied: () => whole([answer({ content: 'so', tool_calls: [bad] })]),
    several: () => whole([answer({ tool_calls: [good] }), { ...answer({ tool_calls: [bad] }), index: 1 }]),
    legacy: () => whole([answer({ function_call: { name: 'delete_all', arguments: '{}' } }, 'function_call')]),
    'legacy-good': () => whole([answer({ function_call: { name: 'search', arguments: '{}' } }, 'function_call')]),
    parts: () => whole([answer({ content: [{ type: 'text', text: 'hi' }], tool_calls: [bad] })]),
    'no-json-arguments': () => whole([answer({ tool_calls: [call('c', 'search', '{"q":')] })]),
    'twice-named': () => whole([answer({ tool_calls: [call('c', 'search', '{"a":1,"a":2}')] })]),
    extension: () => whole([answer({ content: 'x', tools: [bad], tool_call: bad }, 'stop')]),
    'inner-command': () => whole([answer({ tool_calls: [call('c', 'shell', '{"command":["rm","-rf","/"]}')] })]),
    // not to be passed on
    'odd-part': () => whole([answer({ content: [{ type: 'tool_use', name: 'rm' }] })]),
    'odd-kind': () => whole([answer({ tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'rm', input: '' } }] })]),
    'odd-calls': () => whole([answer({ tool_calls: { 0: bad } })]),
    'no-choices': () => ({ id: 'x' }),
    'no-message': () => whole([{ index: 0 }]),
};

const chunk = (delta, finish_reason = null, index = 0) => 'data: ' + JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index, delta, finish_reason }] }) + '\n\n';
const part = (index, more) => chunk({ tool_calls: [{ index, ...more }] });
const fragments = (index, one) => part(index, { id: one.id, type: 'function', function: { name: one.function.name, arguments: '' } }) + [...one.function.arguments].map((c) => part(index, { function: { arguments: c } })).join('');
const done = 'data: [DONE]\n\n';
const start = chunk({ role: 'assistant', content: '' });

const streams = {
    text: start + chunk({ content: 'h' }) + chunk({ content: 'i' }) + chunk({}, 'stop') + done,
    calls: start + fragments(0, good) + fragments(1, bad) + chunk({}, 'tool_calls') + done,
    denied: start + chunk({ content: 'so ' }) + fragments(0, bad) + chunk({}, 'tool_calls') + done,
    legacy: start + chunk({ function_call: { name: 'delete_all', arguments: '' } }) + chunk({ function_call: { arguments: '{}' } }) + chunk({}, 'function_call') + done,
    several: start + chunk({ tool_calls: [{ index: 0, ...good }] }, null, 0) + chunk({ tool_calls: [{ index: 0, ...bad }] }, null, 1) + chunk({}, 'tool_calls', 0) + chunk({}, 'tool_calls', 1) + done,
    crlf: (start + fragments(0, good) + chunk({}, 'tool_calls') + done).replaceAll('\n', '\r\n'),
    comments: ': hello\nevent: message\nid: 7\n' + start + chunk({ content: 'x' }, 'stop') + done,
    extension: start + chunk({ content: 'x', tools: [bad], tool_call: bad }) + chunk({}, 'stop') + done,
    usage: start + chunk({}, 'stop') + 'data: {"id":"c","choices":[],"usage":{"total_tokens":3}}\n\n' + done,
    // not to be passed on
    'same-place': start + part(0, { id: 'a', type: 'function', function: { name: 'search', arguments: '{' } }) + part(0, { id: 'b', function: { name: 'delete_all', arguments: '}' } }) + chunk({}, 'tool_calls') + done,
    'other-name': start + part(0, { id: 'a', function: { name: 'sea', arguments: '' } }) + part(0, { function: { name: 'rch', arguments: '{}' } }) + chunk({}, 'tool_calls') + done,
    'no-place': start + chunk({ tool_calls: [{ id: 'a', function: { name: 'search', arguments: '{}' } }] }) + chunk({}, 'tool_calls') + done,
    'far-place': start + part(64, good) + chunk({}, 'tool_calls') + done,
    'no-finish': start + fragments(0, good) + done,
    'cut-off': start + fragments(0, good),
    'after-finish': start + chunk({}, 'stop') + fragments(0, bad) + done,
    'after-done': start + chunk({}, 'stop') + done + fragments(0, bad),
    'no-json': start + 'data: {"choices":[\n\n',
    'odd-text': start + chunk({ content: { tool_calls: [bad] } }) + done,
    'a-message': start + 'data: {"choices":[{"index":0,"message":{"tool_calls":[]},"delta":{}}]}\n\n' + done,
    failure: start + 'data: {"error":{"message":"no"}}\n\n',
    'long-line': start + 'data: ' + 'x'.repeat(1100000) + '\n\n',
};

function serve(request, response, body) {
    const { model, stream } = JSON.parse(body);
    if (model === 'status-429') return response.writeHead(429, { 'Content-Type': 'application/json' }).end('{"error":{"message":"slow down"}}');
    if (model === 'status-401') return response.writeHead(401, { 'Content-Type': 'application/json' }).end('{"error":{"message":"bad key"}}');
    if (model === 'other-type') return response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>');
    if (model === 'zipped') return response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }).end('x');
    if (model === 'not-json') return response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"choices":[');
    if (model === 'closes') return request.socket.destroy();
    if (model === 'short') {
        response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '100' });
        response.write('{"choices":[');
        return setTimeout(() => request.socket.destroy(), 50);
    }
    if (model === 'large') {
        response.writeHead(200, { 'Content-Type': 'application/json' });
        return response.end('{"choices":[],"x":"' + 'x'.repeat(5000000) + '"}');
    }
    if (!stream) return response.writeHead(200, { 'Content-Type': 'application/json; charset=utf-8' }).end(JSON.stringify(answers[model]()));
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    if (model === 'endless-calls' || model === 'endless-text') {
        const piece = model === 'endless-calls' ? part(0, { function: { name: 'search', arguments: 'x'.repeat(20000) } }) : chunk({ content: 'x'.repeat(20000) });
        const more = () => {
            while (!response.destroyed && response.write(piece));
        };
        response.on('drain', more);
        response.on('error', () => {});
        return more();
    }
    const split = /^(.*)@(\d+)$/.exec(model);
    if (!split) return response.end(streams[model]);
    // The same stream, cut at this byte into two writes.
    const bytes = Buffer.from(streams[split[1]]);
    response.write(bytes.subarray(0, Number(split[2])));
    setImmediate(() => response.end(bytes.subarray(Number(split[2]))));
}

const on = (request, response) => {
    if (request.url === '/last') return response.end(JSON.stringify(last));
    if (request.url === '/lengths') return response.end(JSON.stringify(Object.fromEntries(Object.entries(streams).map(([name, text]) => [name, Buffer.byteLength(text)]))));
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece));
    request.on('end', () => {
        const body = Buffer.concat(pieces).toString();
        last = { url: request.url, headers: request.headers, body };
        serve(request, response, body);
    });
};
const server = cert ? https.createServer({ cert: readFileSync(cert), key: readFileSync(key) }, on) : http.createServer(on);
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
