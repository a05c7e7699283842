// SPDX-License-Identifier: Apache-2.0
// A registry that misbehaves, on a free loopback port. Prints "port N" when it listens; the
// repository's name says how:
//
//   good         serves the layout given as its argument, without tokens
//   stall        answers the manifest and then nothing
//   trickle      a byte every 100 ms
//   short-body   says it sends more than it does
//   long-body    the blob goes on after its size
//   wrong-bytes  the right length, other bytes
//   endless      headers without end
//   loop         redirects to itself
//   twice        redirects once to another port, where credentials must not arrive
//   elsewhere    redirects to a link-local address
//   far-http     redirects to plain HTTP on another host
//   file, ftp    redirects to a file, to another protocol
//   digest       says another digest than the manifest has
//   html         not JSON at all
//   big          a manifest past its ceiling
//   http09       an answer without a head
//   token        wants a token of its own token service
//   bad-token    the token service gives a token with a line break
//   far-token    names a token service over plain HTTP on another host
//   basic        wants a user and a password
//   error-body   an error page without end
//   index        an image index; its entry for linux is the good manifest
//   no-platform  an image index without this machine's platform
//   schema1      a manifest of old
//   flaky        each address answers only the third time: hangs up, then 503, then the answer
//   broken       503, always
//   wait         429 with Retry-After: 1 the first time each address is asked for
//   wait-long    503 with Retry-After: an hour
//   hold         layers are served once there is a file "go" beside the layout; each request and
//                each answer is in the log ("begin", "end")
import http from 'node:http';
import https from 'node:https';
import fs from 'node:fs';

const layout = process.argv[2];
const tls = process.argv[3]; // folder with key.pem and cert.pem: HTTPS instead
const index = JSON.parse(fs.readFileSync(`${layout}/index.json`));
const digest = index.manifests[0].digest;
const blob = (d) => fs.readFileSync(`${layout}/blobs/sha256/${d.slice(7)}`);
const config = JSON.parse(blob(digest)).config.digest;
const manifestType = 'application/vnd.oci.image.manifest.v1+json';
const arch = { x64: 'amd64', arm64: 'arm64' }[process.arch] ?? process.arch;
const log = (line) => fs.appendFileSync(`${layout}/../requests`, line + '\n');
let second;
const seen = new Map(); // of "flaky": how often each address was asked for

const platformIndex = (architecture) =>
    JSON.stringify({
        schemaVersion: 2,
        mediaType: 'application/vnd.oci.image.index.v1+json',
        manifests: [
            { ...index.manifests[0], digest: 'sha256:' + '1'.repeat(64), platform: { os: 'windows', architecture } },
            { ...index.manifests[0], platform: { os: 'linux', architecture } },
        ],
    });

function manifest(how, request, response) {
    const send = (body, type = manifestType, more = {}) =>
        response.writeHead(200, { 'Content-Type': type, ...more }).end(body);
    const reference = request.url.split('/').pop();
    const unauthorized = (challenge) =>
        response.writeHead(401, { 'WWW-Authenticate': challenge }).end('{"errors":[]}');
    const self = `http://${request.headers.host}`;
    switch (how) {
    case 'loop': return response.writeHead(307, { Location: request.url }).end();
    case 'elsewhere': return response.writeHead(302, { Location: 'https://169.254.169.254/latest' }).end();
    case 'far-http': return response.writeHead(302, { Location: 'http://registry.example.org/v2/' }).end();
    case 'file': return response.writeHead(302, { Location: 'file:///etc/passwd' }).end();
    case 'ftp': return response.writeHead(302, { Location: 'ftp://127.0.0.1/x' }).end();
    case 'down': return response.writeHead(302, { Location: `http://127.0.0.1:${second}/v2/x` }).end();
    case 'digest': return send(blob(digest), manifestType, { 'Docker-Content-Digest': 'sha256:' + '0'.repeat(64) });
    case 'html': return send('<html>welcome</html>', 'text/html');
    case 'big': return send(Buffer.alloc(5 << 20, ' '));
    case 'schema1': return send('{"schemaVersion":1,"name":"x"}', 'application/vnd.docker.distribution.manifest.v1+json');
    case 'no-platform': return send(platformIndex('none'), 'application/vnd.oci.image.index.v1+json');
    case 'index':
        if (reference === 'latest') return send(platformIndex(arch), 'application/vnd.oci.image.index.v1+json');
        break;
    case 'http09': return response.socket.end('hello');
    case 'endless': {
        const socket = response.socket;
        socket.write('HTTP/1.1 200 OK\r\n');
        const more = () => { while (!socket.destroyed && socket.write(`X-More: ${'x'.repeat(1000)}\r\n`)); };
        socket.on('drain', more).on('error', () => {});
        return more();
    }
    case 'error-body': {
        response.writeHead(500);
        const more = () => { while (!response.destroyed && response.write('x'.repeat(10000))); };
        response.on('drain', more);
        return more();
    }
    case 'far-token':
        return unauthorized('Bearer realm="http://auth.example.org/token",service="x"');
    case 'token': case 'bad-token':
        if (request.headers.authorization !== 'Bearer sesame')
            return unauthorized(`Bearer realm="${self}/token/${how}",service="a b",scope="repository:other:push"`);
        break;
    case 'basic':
        if (request.headers.authorization !== 'Basic ' + Buffer.from('me:se cret').toString('base64'))
            return unauthorized('Basic realm="here"');
        break;
    }
    return send(blob(digest));
}

function layer(how, request, response) {
    const wanted = request.url.split('/').pop();
    const bytes = blob(wanted);
    switch (how) {
    case 'stall': return response.writeHead(200, { 'Content-Length': bytes.length }).flushHeaders();
    case 'trickle': {
        response.writeHead(200, { 'Content-Length': bytes.length });
        let at = 0;
        const timer = setInterval(() => response.write(bytes.subarray(at, ++at)), 100);
        return response.on('close', () => clearInterval(timer));
    }
    case 'short-body':
        response.writeHead(200, { 'Content-Length': bytes.length });
        response.write(bytes.subarray(0, bytes.length / 2));
        return setTimeout(() => response.destroy(), 50);
    case 'long-body': {
        response.writeHead(200);
        response.write(bytes);
        const more = () => { while (!response.destroyed && response.write(Buffer.alloc(65536))); };
        response.on('drain', more);
        return more();
    }
    case 'hold': {
        if (wanted === config) break;
        log('begin');
        const timer = setInterval(() => {
            if (!fs.existsSync(`${layout}/../go`)) return;
            clearInterval(timer);
            log('end');
            response.end(bytes);
        }, 20);
        return response.on('close', () => clearInterval(timer));
    }
    case 'wrong-bytes': return response.end(Buffer.alloc(bytes.length, 1));
    case 'twice': return response.writeHead(307, { Location: `http://127.0.0.1:${second}/blob/${wanted}` }).end();
    }
    return response.end(bytes);
}

function answer(request, response) {
    log(`${request.url} ${request.headers.authorization ?? '-'}`);
    request.on('error', () => {});
    response.on('error', () => {});
    let match = /^\/v2\/([a-z0-9-]+)\/(manifests|blobs)\//.exec(request.url);
    if (match && match[1] === 'twice' && request.headers.authorization === undefined)
        return response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="x"' }).end();
    if (match && match[1] === 'broken') return response.writeHead(503).end();
    if (match && match[1] === 'wait-long') return response.writeHead(503, { 'Retry-After': '3600' }).end();
    if (match && match[1] === 'wait' && !seen.has(request.url)) {
        seen.set(request.url, Date.now());
        return response.writeHead(429, { 'Retry-After': '1' }).end();
    }
    if (match && match[1] === 'wait') log(`waited ${Date.now() - seen.get(request.url)}`);
    if (match && match[1] === 'flaky') {
        seen.set(request.url, (seen.get(request.url) ?? 0) + 1);
        if (seen.get(request.url) === 1) return response.socket.destroy();
        if (seen.get(request.url) === 2) return response.writeHead(503).end();
    }
    if (match) return match[2] === 'manifests' ? manifest(match[1], request, response) : layer(match[1], request, response);
    match = /^\/token\/([a-z-]+)\?/.exec(request.url);
    if (match) return response.end(JSON.stringify({ token: match[1] === 'token' ? 'sesame' : 'sesame\r\nX-Evil: 1' }));
    match = /^\/blob\/(sha256:[0-9a-f]+)$/.exec(request.url);
    if (match) return response.end(blob(match[1]));
    response.writeHead(404).end();
}

const other = http.createServer(answer).listen(0, '127.0.0.1', () => {
    second = other.address().port;
    const main = tls
        ? https.createServer({ key: fs.readFileSync(`${tls}/key.pem`), cert: fs.readFileSync(`${tls}/cert.pem`) }, answer)
        : http.createServer(answer);
    main.listen(0, '127.0.0.1', () => console.log(`port ${main.address().port}`));
});
