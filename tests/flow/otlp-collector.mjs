// SPDX-License-Identifier: Apache-2.0
// A collector of telemetry on loopback, good or bad:
//
//     node otlp-collector.mjs MODE FILE [KEY CERTIFICATE]
//
// Prints its port; every request becomes a line of FILE: {"path", "headers", "body"}. Modes: good;
// busy (503 with Retry-After: 1 twice, then good); hang (never answers); garbage (an answer that is
// no HTTP); endless (200, and a body without an end); close (hangs up); picky (400);
// partial (200, and one of them is not wanted).
import { appendFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';

const [mode, file, key, certificate] = process.argv.slice(2);
let refusals = mode === 'busy' ? 2 : 0;

function answer(request, response) {
  const good = (body = '{}') => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(body);
  };
  if (refusals > 0) {
    refusals -= 1;
    response.writeHead(503, { 'retry-after': '1' });
    response.end();
    return;
  }
  switch (mode) {
    case 'hang':
      break;
    case 'garbage':
      request.socket.end('\x00\x01 4711 nonsense\r\n'.repeat(100));
      break;
    case 'endless':
      response.writeHead(200, { 'content-type': 'application/json' });
      setInterval(() => response.write('x'.repeat(65536)), 1).unref();
      break;
    case 'close':
      request.socket.destroy();
      break;
    case 'picky':
      response.writeHead(400);
      response.end('{"message":"no"}');
      break;
    case 'partial':
      good('{"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}}');
      break;
    default:
      good();
  }
}

const serve = (request, response) => {
  const pieces = [];
  response.on('error', () => {});
  request.on('error', () => {});
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    const body = Buffer.concat(pieces).toString();
    appendFileSync(file, `${JSON.stringify({ path: request.url, headers: request.headers, at: Date.now(), body: JSON.parse(body) })}\n`);
    answer(request, response);
  });
};
const server = key
  ? createTlsServer({ key: readFileSync(key), cert: readFileSync(certificate) }, serve)
  : createServer(serve);
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
