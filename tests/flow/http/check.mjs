// SPDX-License-Identifier: Apache-2.0
// check.mjs NAME PORT [ARGUMENT...]: one check against tests/flow/http/server.c; see ../http.bats.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import net from 'node:net';

const [, , name, portText, ...rest] = process.argv;
const port = Number(portText);
const base = `http://127.0.0.1:${port}`;
const deadlineMs = 60000;

// ---- a client that says exactly what it is told ----

class Raw {
  constructor() {
    this.text = '';
    this.closed = false;
    this.waiters = [];
    this.socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    this.socket.on('data', (d) => { this.text += d.toString('latin1'); this.wake(); });
    this.socket.on('connect', () => this.wake());
    this.socket.on('end', () => { this.ended = true; this.wake(); });
    this.socket.on('close', () => { this.closed = true; this.wake(); });
    this.socket.on('error', (e) => { this.error = e; this.wake(); });
  }
  wake() { for (const w of this.waiters.splice(0)) w(); }
  async until(what, condition) {
    const end = Date.now() + deadlineMs;
    while (!condition()) {
      const left = end - Date.now();
      if (left <= 0) throw new Error(`waited in vain for ${what}; have ${JSON.stringify(this.text.slice(-300))}`);
      await Promise.race([new Promise((r) => this.waiters.push(r)), new Promise((r) => setTimeout(r, Math.min(left, 200)))]);
    }
  }
  connected() { return this.until('the connection', () => this.socket.readyState === 'open' || this.ended || this.closed || this.error); }
  say(text) { return new Promise((r) => this.socket.write(Buffer.from(text, 'latin1'), () => r())); }
  has(text) { return this.until(JSON.stringify(text), () => this.text.includes(text)); }
  end() { return this.until('the end', () => this.ended || this.closed || this.error); }
  destroy() { this.socket.destroy(); }
}

const get = (path, more = '') => `GET ${path} HTTP/1.1\r\nHost: h\r\n${more}\r\n`;

async function stats() {
  const text = await (await fetch(`${base}/stats`)).text();
  return Object.fromEntries(text.trim().split(' ').map((w) => w.split('=')).map(([k, v]) => [k, Number(v)]));
}

async function statsUntil(what, condition) {
  const end = Date.now() + deadlineMs;
  for (;;) {
    const s = await stats();
    if (condition(s)) return s;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}: ${JSON.stringify(s)}`);
    await new Promise((r) => setTimeout(r, 10));
  }
}

// The cases of tests/vectors/http/request.txt.
function unescape(text) {
  let out = '';
  for (let i = 0; i < text.length;) {
    const rep = /^\{(\d+)\*/.exec(text.slice(i));
    if (rep) {
      let depth = 1, end = i + rep[0].length;
      const from = end;
      for (; depth > 0; end++) depth += text[end] === '{' ? 1 : text[end] === '}' ? -1 : 0;
      out += unescape(text.slice(from, end - 1)).repeat(Number(rep[1]));
      i = end;
      continue;
    }
    const hex = /^\\x([0-9a-f]{2})/.exec(text.slice(i));
    const esc = { r: '\r', n: '\n', t: '\t', s: ' ', '\\': '\\' }[text[i + 1]];
    if (hex) { out += String.fromCharCode(parseInt(hex[1], 16)); i += 4; }
    else if (text[i] === '\\' && esc) { out += esc; i += 2; }
    else { out += text[i]; i++; }
  }
  return out;
}

function cases(file) {
  return readFileSync(file, 'latin1').split('\n').filter((l) => l && l[0] !== '#').map((l) => {
    const bar = l.indexOf(' | ');
    return [l.slice(0, bar).trim(), unescape(l.slice(bar + 3))];
  });
}

function maskedFrame(opcode, payload, { fin = true, masked = true, rsv = 0 } = {}) {
  const body = Buffer.from(payload);
  const head = [(fin ? 0x80 : 0) | rsv | opcode];
  const m = masked ? 0x80 : 0;
  if (body.length < 126) head.push(m | body.length);
  else if (body.length < 65536) head.push(m | 126, body.length >> 8, body.length & 255);
  else head.push(m | 127, 0, 0, 0, 0, body.length >>> 24, (body.length >> 16) & 255, (body.length >> 8) & 255, body.length & 255);
  const mask = [1, 2, 3, 4];
  if (masked) { head.push(...mask); for (let i = 0; i < body.length; i++) body[i] ^= mask[i & 3]; }
  return Buffer.concat([Buffer.from(head), body]).toString('latin1');
}

const handshake = (more = '', path = '/ws', version = '13', key = 'dGhlIHNhbXBsZSBub25jZQ==') =>
  get(path, `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: ${version}\r\nSec-WebSocket-Key: ${key}\r\n${more}`);

async function rawWs(path = '/ws') {
  const c = new Raw();
  await c.say(handshake('', path));
  await c.has('\r\n\r\n');
  assert.match(c.text, /^HTTP\/1\.1 101 /);
  assert.match(c.text, /Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/);
  c.text = c.text.slice(c.text.indexOf('\r\n\r\n') + 4);
  return c;
}

const closeFrame = (code) => `\x88\x02${String.fromCharCode(code >> 8)}${String.fromCharCode(code & 255)}`;

const checks = {
  // Every refused head of the vectors: one answer with the right reason, then the end; a second
  // request hidden behind it is never answered.
  async refused(file) {
    const all = cases(file).filter(([e]) => e.startsWith('!'));
    assert.ok(all.length > 150);
    for (const [expected, bytes] of all) {
      const c = new Raw();
      c.say(bytes + get('/hidden'));
      await c.end();
      assert.match(c.text, /^HTTP\/1\.1 [45]\d\d /, `${expected}: ${JSON.stringify(bytes.slice(0, 80))} ${c.error ?? ''}`);
      assert.ok(c.text.includes(`"code":"${expected.slice(1)}"`), `${expected}: ${c.text}`);
      assert.ok(c.text.includes('\r\nConnection: close\r\n'), c.text);
      assert.equal(c.text.match(/^HTTP\/1\.1 \d{3} /gm).length, 1, c.text);
      c.destroy();
    }
    assert.equal((await stats()).requests, 1);
  },

  async 'refused-bodies'(file) {
    const all = cases(file).filter(([e]) => e.startsWith('!') && e !== '!body_too_large');
    assert.ok(all.length > 40);
    for (const [expected, bytes] of all) {
      const c = new Raw();
      c.say(`POST /count HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n${bytes}${get('/hidden')}`);
      await c.end();
      assert.match(c.text, /^HTTP\/1\.1 400 /, `${expected}: ${JSON.stringify(bytes)}`);
      assert.ok(c.text.includes(`"code":"${expected.slice(1)}"`), `${expected}: ${c.text}`);
      assert.equal(c.text.match(/^HTTP\/1\.1 \d{3} /gm).length, 1, c.text);
      c.destroy();
    }
    await statsUntil('all exchanges to end', (s) => s.live === 0);
  },

  async pipelining() {
    const n = 1000;
    const c = new Raw();
    let bytes = '';
    for (let i = 0; i < n; i++) {
      bytes += i % 50 === 7 ? get(`/later?i=${i}`) : get(`/head?i=${i}`);
      if (i % 100 === 3) bytes += `POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello`;
    }
    await c.say(bytes + get('/head?last', 'Connection: close\r\n'));
    await c.end();
    const seen = [...c.text.matchAll(/query=(i=\d+|last)|from a thread|\r\n\r\n5\n/g)].map((m) => m[1] ?? m[0].trim());
    const want = [];
    for (let i = 0; i < n; i++) {
      want.push(i % 50 === 7 ? 'from a thread' : `i=${i}`);
      if (i % 100 === 3) want.push('5');
    }
    assert.deepEqual(seen, [...want, 'last']);
  },

  // A client that sends far more requests than it takes answers for.
  async 'pipelining-flood'() {
    const c = new Raw();
    c.socket.pause();
    const before = (await stats()).requests;
    c.say(get('/stream?bytes=100000').repeat(20000)); // 2 GB of answers
    await statsUntil('the first of them', (s) => s.requests > before + 5);
    for (let i = 0; i < 300; i++) await stats(); // turns of the loop in which it could go on
    const taken = (await stats()).requests - before - 302;
    assert.ok(taken < 500, `${taken} requests were taken up`);
    c.destroy();
    await statsUntil('the end', (s) => s.live === 0 && s.connections <= 2);
  },

  async 'slow-clients'(countText) {
    const slow = [];
    for (let i = 0; i < Number(countText); i++) {
      slow.push(new Raw());
      if (i % 100 === 99) await Promise.all(slow.slice(-100).map((c) => c.connected()));
    }
    await Promise.all(slow.map((c, i) => c.say(get('/head', 'X: y\r\n').slice(0, 1 + (i % 30)))));
    await statsUntil('all of them', (s) => s.connections > slow.length);
    // Others are served meanwhile. The bound is generous: a server that waits for one of them
    // would need its whole deadline, which is minutes here.
    for (let i = 0; i < 50; i++) {
      const start = Date.now();
      assert.equal(await (await fetch(base)).text(), 'hello\n');
      assert.ok(Date.now() - start < 60000);
    }
    for (const c of slow) { assert.equal(c.closed, false); assert.equal(c.text, ''); c.destroy(); }
    await statsUntil('them to be gone', (s) => s.connections <= 2);
  },

  async 'head-deadline'() {
    const partial = new Raw();
    const silent = new Raw();
    const trickle = new Raw();
    await partial.say('GET / HTT');
    const timer = setInterval(() => trickle.say('X'), 50);
    await partial.end();
    assert.match(partial.text, /^HTTP\/1\.1 408 /);
    assert.match(partial.text, /head_timeout/);
    await silent.end();
    assert.equal(silent.text, '');
    await trickle.end();
    clearInterval(timer);
    assert.match(trickle.text, /^HTTP\/1\.1 408 /);
    for (const c of [partial, silent, trickle]) c.destroy();
  },

  async 'body-deadline'() {
    const c = new Raw();
    await c.say('POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhel');
    await c.end();
    assert.match(c.text, /^HTTP\/1\.1 408 /);
    assert.match(c.text, /body_timeout/);
    const begun = new Raw();
    await begun.say('POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhel');
    await begun.end();
    assert.match(begun.text, /^HTTP\/1\.1 200 /);
    assert.doesNotMatch(begun.text, /408/);
    assert.doesNotMatch(begun.text, /\r\n0\r\n\r\n$/);
    const s = await statsUntil('both', (x) => x.timeout === 2);
    assert.equal(s.live, 0);
    c.destroy(); begun.destroy();
  },

  async 'idle-deadline'() {
    const c = new Raw();
    await c.say(get('/'));
    await c.has('hello\n');
    await c.end();
    assert.equal(c.text.split('HTTP/1.1 ').length, 2);
    c.destroy();
  },

  async 'write-deadline'() {
    const c = new Raw();
    c.socket.pause();
    await c.say(get('/stream?bytes=100000000'));
    await statsUntil('the deadline', (s) => s.timeout === 1 && s.live === 0);
    c.destroy();
  },

  // It reads only when it can send no more, as a busy client does.
  async 'refused-while-sending'() {
    const c = new Raw();
    c.socket.pause();
    await c.say('POST /count?max=3 HTTP/1.1\r\nHost: h\r\nContent-Length: 67108864\r\n\r\n');
    c.say('x'.repeat(67108864));
    for (let before = -1; before !== c.socket.bytesWritten - c.socket.writableLength && !c.error;) {
      before = c.socket.bytesWritten - c.socket.writableLength;
      await new Promise((r) => setTimeout(r, 500));
    }
    c.socket.resume();
    await c.end();
    assert.equal(c.error, undefined);
    assert.match(c.text, /^HTTP\/1\.1 413 /);
    c.destroy();
  },

  async ceiling() {
    const held = [1, 2, 3].map(() => new Raw());
    for (const c of held) { await c.say(get('/')); await c.has('hello'); }
    const fourth = new Raw();
    await fourth.say(get('/'));
    await fourth.has('hello');
    const fifth = new Raw();
    await fifth.say(get('/'));
    await fifth.end();
    assert.match(fifth.text, /^HTTP\/1\.1 503 /);
    assert.match(fifth.text, /\r\nRetry-After: 1\r\n/);
    assert.match(fifth.text, /too_many_connections/);
    fifth.destroy();
    for (const c of [fourth, ...held]) c.destroy();
    await statsUntil('room again', (s) => s.connections <= 1 && s.overflow >= 1).catch(async () => {
      throw new Error(`no room: ${JSON.stringify(await stats())}`);
    });
  },

  async 'out-of-descriptors'() {
    const some = [];
    for (let i = 0; i < 60; i++) { const c = new Raw(); some.push(c); await c.connected(); }
    await Promise.all(some.map((c) => c.say(get('/')).catch(() => {})));
    await Promise.all(some.map((c) => c.until('an answer or the end', () => c.text.includes('hello') || c.ended || c.error)));
    assert.ok(some.some((c) => c.text.includes('hello')), 'nobody was served');
    assert.ok(some.some((c) => !c.text.includes('hello')), 'nobody was turned away');
    for (const c of some) c.destroy();
    for (let i = 0; ; i++) {
      try { assert.equal(await (await fetch(base)).text(), 'hello\n'); break; } catch (e) { if (i > 100) throw e; }
    }
  },

  // The client goes away after every byte of a request, and at many points of an answer.
  async disconnects() {
    const requests = [
      'POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      'POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello',
      'POST /form HTTP/1.1\r\nHost: h\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 61\r\n\r\n--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nv\r\n--b--\r\n',
      get('/nothing'), get('/later?ms=20'), get('/events?stay=1'), handshake() + maskedFrame(1, 'hello'),
    ];
    let n = 0;
    for (const request of requests) {
      for (let cut = 1; cut <= request.length; cut++) {
        const c = new Raw();
        await c.connected();
        await c.say(request.slice(0, cut));
        if (cut % 2) c.socket.resetAndDestroy(); else c.destroy();
        n++;
      }
      await statsUntil(`the end of ${request.slice(0, 20)}`, (s) => s.live === 0 && s.connections <= 2);
    }
    assert.ok(n > 500);
    for (const taken of [0, 1, 100, 10000, 1000000, 5000000]) {
      const c = new Raw();
      await c.say(get('/stream?bytes=1000000000'));
      await c.until(`${taken} bytes`, () => c.text.length >= taken);
      c.destroy();
      await statsUntil('the stream to end', (s) => s.live === 0);
    }
    const s = await stats();
    assert.equal(s.live, 0);
    assert.ok(s.client > 0);
  },

  async halves() {
    // A handler that has not answered hears of the disconnect while it waits.
    const c = new Raw();
    await c.say(get('/nothing'));
    await statsUntil('the request', (s) => s.live === 1);
    c.socket.end();
    await statsUntil('on_gone', (s) => s.live === 0 && s.client === 1);
    c.destroy();
    const paused = new Raw();
    await paused.say('POST /paused HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello');
    await statsUntil('the request', (s) => s.live === 1);
    paused.destroy();
    await statsUntil('on_gone', (s) => s.live === 0 && s.client === 2);
  },

  async backpressure() {
    // Paused: the client can send no more than buffers hold.
    const c = new Raw();
    const total = 50_000_000;
    await c.say(`POST /paused HTTP/1.1\r\nHost: h\r\nContent-Length: ${total}\r\n\r\n`);
    const block = Buffer.alloc(1_000_000);
    for (let i = 0; i < total / block.length; i++) c.socket.write(block);
    await statsUntil('the request', (s) => s.live === 1);
    assert.equal((await stats()).delivered, 0);
    assert.ok(c.socket.bytesWritten >= 0 && c.socket.writableLength > 20_000_000, `${c.socket.writableLength} bytes wait here`);
    await fetch(`${base}/resume`);
    await c.has(`\r\n\r\n${total}\n`);
    assert.equal((await stats()).delivered, total);
    c.destroy();
    // Echo to somebody who does not read: it stops reading as well, and goes on afterwards.
    const e = new Raw();
    e.socket.pause();
    await e.say(`POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: ${total}\r\n\r\n`);
    for (let i = 0; i < total / block.length; i++) e.socket.write(block);
    await statsUntil('the request', (s) => s.live === 1);
    assert.ok(e.socket.writableLength > 20_000_000, `${e.socket.writableLength} bytes wait here`);
    let echoed = 0;
    e.socket.removeAllListeners('data');
    let tail = '';
    e.socket.on('data', (d) => { echoed += d.length; tail = (tail + d.toString('latin1')).slice(-10); e.wake(); });
    e.socket.resume();
    await e.until('all of it', () => tail.endsWith('\r\n0\r\n\r\n'));
    assert.ok(echoed > total);
    e.destroy();
    // One that does not wait loses its exchange.
    const f = new Raw();
    f.socket.pause();
    await f.say(get('/flood'));
    await statsUntil('the abort', (s) => s.aborted === 1 && s.live === 0);
    f.destroy();
  },

  async early() {
    // A small body that is not wanted is skipped, the connection stays.
    const c = new Raw();
    await c.say(`POST /early HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello${get('/')}`);
    await c.has('hello\n');
    assert.match(c.text, /^HTTP\/1\.1 403 /);
    c.destroy();
    const late = new Raw();
    await late.say('POST /early HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n');
    await late.has('no\n');
    await late.say(`hello${get('/')}`);
    await late.has('hello\n');
    late.destroy();
    // A large one, or one whose end is not known, costs it.
    for (const framing of ['Content-Length: 100000000', 'Transfer-Encoding: chunked', 'Content-Length: 5\r\nExpect: 100-continue']) {
      const d = new Raw();
      await d.say(`POST /early HTTP/1.1\r\nHost: h\r\n${framing}\r\n\r\n`);
      await d.end();
      assert.match(d.text, /^HTTP\/1\.1 403 /);
      assert.match(d.text, /\r\nConnection: close\r\n/);
      assert.match(d.text, /no\n$/);
      d.destroy();
    }
  },

  async expect() {
    const c = new Raw();
    await c.say('POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n');
    await c.has('HTTP/1.1 100 Continue\r\n\r\n');
    await c.say('hello');
    await c.has('\r\n\r\n5\n');
    assert.equal(c.text.match(/100 Continue/g).length, 1);
    // Who does not wait gets no 100.
    c.text = '';
    await c.say('POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello');
    await c.has('\r\n\r\n5\n');
    assert.doesNotMatch(c.text, /100 Continue/);
    // Refused before the client has sent anything.
    c.text = '';
    await c.say('POST /count?max=3 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n');
    await c.end();
    assert.match(c.text, /^HTTP\/1\.1 413 /);
    c.destroy();
    // Paused handlers do not ask for the body yet.
    const p = new Raw();
    await p.say('POST /paused HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n');
    await statsUntil('the request', (s) => s.live === 1);
    assert.equal(p.text, '');
    await fetch(`${base}/resume`);
    await p.has('100 Continue');
    await p.say('hello');
    await p.has('\r\n\r\n5\n');
    p.destroy();
  },

  async bodies() {
    assert.equal(await (await fetch(`${base}/count`, { method: 'POST', body: 'x'.repeat(1000000) })).text(), '1000000\n');
    const parts = new ReadableStream({
      start(c) { for (let i = 0; i < 100; i++) c.enqueue(new TextEncoder().encode('0123456789')); c.close(); },
    });
    const echo = await fetch(`${base}/echo`, { method: 'POST', body: parts, duplex: 'half' });
    assert.equal(await echo.text(), '0123456789'.repeat(100));
    for (const [max, status] of [[4, 413], [5, 200]]) {
      assert.equal((await fetch(`${base}/count?max=${max}`, { method: 'POST', body: 'hello' })).status, status);
      const chunked = new Raw();
      await chunked.say(`POST /count?max=${max} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n`);
      await chunked.end();
      assert.ok(chunked.text.startsWith(`HTTP/1.1 ${status} `), chunked.text);
      chunked.destroy();
    }
    assert.equal((await fetch(`${base}/default`, { method: 'POST', body: 'x'.repeat(1048577) })).status, 413);
    assert.equal((await fetch(`${base}/default`, { method: 'POST', body: 'x'.repeat(1048576) })).status, 200);
    const form = new FormData();
    form.set('field', 'value');
    form.set('file', new Blob(['0123456789'], { type: 'text/css' }), 'a "b".css');
    assert.equal(await (await fetch(`${base}/form`, { method: 'POST', body: form })).text(),
      'name=field file= type= bytes=5\nname=file file=a %22b%22.css type=text/css bytes=10\n');
    assert.equal((await fetch(`${base}/form`, { method: 'POST', body: 'x' })).status, 400);
  },

  async heads() {
    const head = await fetch(base, { method: 'HEAD' });
    assert.equal(head.headers.get('content-length'), '6');
    assert.equal(await head.text(), '');
    const c = new Raw();
    await c.say(`HEAD / HTTP/1.1\r\nHost: h\r\n\r\nHEAD /stream?bytes=10 HTTP/1.1\r\nHost: h\r\n\r\n${get('/status?is=204')}${get('/status?is=304')}${get('/', 'Connection: close\r\n')}`);
    await c.end();
    assert.deepEqual([...c.text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((m) => m[1]), ['200', '200', '204', '304', '200']);
    assert.equal(c.text.split('\r\n\r\n').filter((t) => !t.startsWith('HTTP')).join(), 'hello\n');
    c.destroy();
    const old = new Raw();
    await old.say('GET /stream?bytes=5 HTTP/1.0\r\n\r\n');
    await old.end();
    assert.match(old.text, /\r\nConnection: close\r\n/);
    assert.match(old.text, /\r\n\r\n\0{5}$/);
    assert.doesNotMatch(old.text, /chunked/);
    old.destroy();
    const injected = await fetch(`${base}/injection`);
    assert.equal(injected.status, 500);
    assert.equal(injected.headers.get('set-cookie'), null);
    assert.match(await injected.text(), /control byte/);
    // An answer that breaks off is seen to be broken.
    for (const path of ['/cut', '/cut?length=10', '/cut?length=10&end=1'])
      await assert.rejects(async () => (await fetch(base + path)).text(), path);
  },

  async events() {
    const text = await (await fetch(`${base}/events`)).text();
    assert.equal(text, [1, 2, 3].map((i) => `event: line\nid: ${i}\ndata: one\ndata: two\n\n`).join(''));
    const again = await fetch(`${base}/events`, { headers: { 'last-event-id': '2' } });
    assert.equal(again.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    assert.equal(await again.text(), 'event: line\nid: 3\ndata: one\ndata: two\n\n');
    // Each event leaves at once.
    const c = new Raw();
    await c.say(get('/events?stay=1'));
    await c.has('id: 3\n');
    c.destroy();
  },

  async 'ws-client'() {
    const ws = new WebSocket(`ws://127.0.0.1:${port}/ws`, ['other', 'echo']);
    ws.binaryType = 'arraybuffer';
    const got = [];
    let wake;
    ws.onmessage = (e) => { got.push(e.data); wake?.(); };
    await new Promise((r, j) => { ws.onopen = r; ws.onerror = j; });
    assert.equal(ws.protocol, 'echo');
    const next = async () => { while (!got.length) await new Promise((r) => { wake = r; }); return got.shift(); };
    ws.send('hello');
    assert.equal(await next(), 'hello');
    ws.send('');
    assert.equal(await next(), '');
    for (const n of [1, 125, 126, 65535, 65536, 1000000]) {
      ws.send(new Uint8Array(n).fill(7));
      const back = new Uint8Array(await next());
      assert.equal(back.length, n);
      assert.ok(back.every((b) => b === 7));
    }
    for (let i = 0; i < 2000; i++) ws.send(`${i} ${'x'.repeat(500)}`);
    for (let i = 0; i < 2000; i++) assert.ok((await next()).startsWith(`${i} `));
    const closed = new Promise((r) => { ws.onclose = r; });
    ws.send('close please');
    const e = await closed;
    assert.deepEqual([e.code, e.reason, e.wasClean], [4001, 'as you wish', true]);
    await statsUntil('on_gone', (s) => s.live === 0 && s.done >= 1);
    const mine = new WebSocket(`ws://127.0.0.1:${port}/ws`);
    await new Promise((r) => { mine.onopen = r; });
    const gone = new Promise((r) => { mine.onclose = r; });
    mine.close(3000, 'bye');
    assert.equal((await gone).code, 3000);
    const twice = new WebSocket(`ws://127.0.0.1:${port}/ws`);
    await new Promise((r) => { twice.onopen = r; });
    const ended = new Promise((r) => { twice.onclose = r; });
    twice.send('close twice');
    assert.equal((await ended).code, 1000);
    await statsUntil('on_gone', (s) => s.live === 0);
  },

  async 'ws-frames'() {
    const broken = [
      ['unmasked', maskedFrame(1, 'x', { masked: false }), 1002],
      ['unmasked ping', maskedFrame(9, '', { masked: false }), 1002],
      ['reserved bit', maskedFrame(1, 'x', { rsv: 0x40 }), 1002],
      ['unknown opcode', maskedFrame(3, 'x'), 1002],
      ['continuation of nothing', maskedFrame(0, 'x'), 1002],
      ['text inside a text', maskedFrame(1, 'x', { fin: false }) + maskedFrame(1, 'y'), 1002],
      ['long ping', maskedFrame(9, 'x'.repeat(126)), 1002],
      ['fragmented ping', maskedFrame(9, 'x', { fin: false }), 1002],
      ['length in a long form', '\x82\xfe\x00\x05\x01\x02\x03\x04', 1002],
      ['length in the longest form', '\x82\xff\0\0\0\0\0\0\xff\xff\x01\x02\x03\x04', 1002],
      ['negative length', '\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x03\x04', 1002],
      ['not UTF-8', maskedFrame(1, Buffer.from([0xff])), 1007],
      ['too large', maskedFrame(2, Buffer.alloc(1048577)).slice(0, 20), 1009],
      ['too many fragments', maskedFrame(2, 'x', { fin: false }) + maskedFrame(0, 'x', { fin: false }).repeat(1024), 1009],
      ['too large together', maskedFrame(2, Buffer.alloc(700000), { fin: false }) + maskedFrame(0, Buffer.alloc(700000)).slice(0, 20), 1009],
    ];
    for (const [what, bytes, code] of broken) {
      const c = await rawWs();
      await c.say(bytes);
      await c.has(closeFrame(code)).catch((e) => { throw new Error(`${what}: ${e.message}`); });
      await c.end();
      c.destroy();
    }
    // Split at every byte: fragments, a ping between them, and the close.
    const talk = maskedFrame(1, 'hel', { fin: false }) + maskedFrame(9, 'p') + maskedFrame(0, 'lo') + maskedFrame(8, Buffer.from([3, 0xe8]));
    for (let cut = 1; cut <= talk.length; cut++) {
      const c = await rawWs();
      c.socket.setNoDelay(true);
      await c.say(talk.slice(0, cut));
      await c.say(talk.slice(cut));
      await c.end();
      assert.equal(c.text, `\x8a\x01p\x81\x05hello${closeFrame(1000)}`);
      c.destroy();
    }
    await statsUntil('on_gone', (s) => s.live === 0);
    for (const [bytes, status, code] of [
      [handshake('', '/ws', '12'), 426, 'upgrade_version'],
      [handshake('', '/ws', '13', 'short'), 400, 'upgrade'],
      [handshake('', '/ws', '13', 'dGhlIHNhbXBsZSBub25jZR=='), 400, 'upgrade'],
      [get('/ws'), 400, 'upgrade'],
      [get('/ws', 'Connection: Upgrade\r\nUpgrade: h2c\r\n'), 400, 'upgrade'],
      [handshake('Content-Length: 0\r\n'), 400, 'upgrade'],
    ]) {
      const c = new Raw();
      await c.say(bytes);
      await c.end();
      assert.ok(c.text.startsWith(`HTTP/1.1 ${status} `) && c.text.includes(`"code":"${code}"`), c.text);
      if (status === 426) assert.match(c.text, /\r\nSec-WebSocket-Version: 13\r\n/);
      c.destroy();
    }
    // A ping flood from somebody who does not read ends in an abort, not in memory.
    const c = await rawWs();
    c.socket.pause();
    const pings = maskedFrame(9, 'x'.repeat(125)).repeat(5000);
    for (let i = 0; i < 60 && !c.error && !c.closed; i++) await Promise.race([c.say(pings), new Promise((r) => setTimeout(r, 500))]);
    c.destroy();
    await statsUntil('the abort', (s) => s.live === 0);
  },

  // Silence is asked about; who does not answer is gone; nor is a close frame waited for forever.
  async 'ws-silence'() {
    const polite = await rawWs();
    polite.socket.on('data', (d) => { if (d.includes('\x89\x00', 'latin1')) polite.say(maskedFrame(10, '')); });
    const silent = await rawWs();
    await silent.end();
    await polite.until('three pings', () => polite.text.split('\x89\x00').length > 3);
    assert.equal(silent.text, '\x89\x00');
    await statsUntil('on_gone', (s) => s.aborted === 1);
    await polite.say(maskedFrame(1, 'still here'));
    await polite.has('still here');
    polite.destroy();
    const rude = await rawWs();
    await rude.say(maskedFrame(1, 'close please'));
    await rude.has('as you wish');
    await rude.end();
    await statsUntil('on_gone', (s) => s.live === 0);
    for (const c of [silent, rude]) c.destroy();
  },

  // The answer in flight comes, idle connections close, new ones are not taken.
  async 'graceful-stop'() {
    const idle = new Raw();
    await idle.say(get('/'));
    await idle.has('hello');
    const half = new Raw();
    await half.say('GET / HT');
    const upload = new Raw();
    await upload.say('POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe');
    const waiting = new Raw();
    await waiting.say(get('/held'));
    await statsUntil('both', (s) => s.live === 2);
    const stop = new Raw();
    await stop.say(get('/stop'));
    await stop.has('stopping\n');
    await idle.end();
    await half.end();
    const refused = new Raw();
    await refused.until('the refusal', () => refused.error);
    assert.equal(refused.error.code, 'ECONNREFUSED');
    await upload.say('llo');
    await upload.has('\r\n\r\n5\n');
    await waiting.has('from a thread\n');
    assert.match(waiting.text, /\r\nConnection: close\r\n/);
    await waiting.end();
    for (const c of [idle, half, upload, waiting, stop]) c.destroy();
  },

  async 'hard-stop'() {
    const c = new Raw();
    await c.say(get('/nothing'));
    const ws = await rawWs();
    await statsUntil('both', (s) => s.live === 2);
    const stop = new Raw();
    await stop.say(get('/stop'));
    await c.end();
    await ws.end();
    for (const x of [c, ws, stop]) x.destroy();
  },
};

await checks[name](...rest);
process.exit(0);
