// SPDX-License-Identifier: Apache-2.0
// What a collector received, held against the rules of OTLP/JSON and of our own docs:
//
//     node otlp-check.mjs FILE            shape of every request; prints how many of each there are
//     node otlp-check.mjs FILE run ID     the trace of that run, as one object
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const [file, what, id] = process.argv.slice(2);
const requests = readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
const lists = {
  '/v1/traces': ['resourceSpans', 'scopeSpans', 'spans'],
  '/v1/logs': ['resourceLogs', 'scopeLogs', 'logRecords'],
  '/v1/metrics': ['resourceMetrics', 'scopeMetrics', 'metrics'],
};
const found = { spans: [], logRecords: [], metrics: [] };

const plain = (attributes) => Object.fromEntries(attributes.map(({ key, value }) => {
  assert.equal(Object.keys(value).length, 1);
  if ('intValue' in value) assert.match(value.intValue, /^-?\d+$/);
  else assert.equal(typeof value.stringValue, 'string');
  return [key, value.stringValue ?? Number(value.intValue)];
}));
const time = (text) => {
  assert.equal(typeof text, 'string');
  assert.match(text, /^\d{19}$/);
  return BigInt(text);
};

function checkSpan(span) {
  assert.match(span.traceId, /^[0-9a-f]{32}$/);
  assert.match(span.spanId, /^[0-9a-f]{16}$/);
  assert.ok(span.parentSpanId === undefined || /^[0-9a-f]{16}$/.test(span.parentSpanId));
  assert.ok(span.kind === 1 || span.kind === 2);
  assert.ok(time(span.startTimeUnixNano) <= time(span.endTimeUnixNano));
  plain(span.attributes);
}

function checkLog(log) {
  time(log.timeUnixNano);
  assert.ok([9, 13, 17].includes(log.severityNumber));
  assert.equal(log.body.stringValue, 'request');
  assert.match(log.traceId, /^[0-9a-f]{32}$/);
  plain(log.attributes);
}

function checkMetric(metric) {
  const data = metric.sum ?? metric.gauge ?? metric.histogram;
  assert.ok(data.dataPoints.length > 0, metric.name);
  if (!metric.gauge) assert.equal(data.aggregationTemporality, 2);
  if (metric.sum) assert.equal(data.isMonotonic, true);
  for (const point of data.dataPoints) {
    plain(point.attributes);
    time(point.timeUnixNano);
    if (!metric.gauge) assert.ok(time(point.startTimeUnixNano) <= time(point.timeUnixNano));
    if (!metric.histogram) {
      assert.equal(typeof point.asDouble, 'number');
      continue;
    }
    assert.equal(point.bucketCounts.length, point.explicitBounds.length + 1);
    assert.equal(point.bucketCounts.reduce((sum, n) => sum + Number(n), 0), Number(point.count));
    assert.equal(typeof point.count, 'string');
    assert.equal(typeof point.sum, 'number');
  }
}

const checks = { spans: checkSpan, logRecords: checkLog, metrics: checkMetric };

for (const { path, headers, body } of requests) {
  const [resources, scopes, items] = lists[path];
  assert.equal(headers['content-type'], 'application/json');
  assert.deepEqual(Object.keys(body), [resources]);
  for (const resource of body[resources]) {
    assert.equal(plain(resource.resource.attributes)['service.name'], 'brig');
    for (const scope of resource[scopes]) {
      assert.ok(scope[items].length > 0);
      scope[items].forEach(checks[items]);
      found[items].push(...scope[items]);
    }
  }
}

// What was refused at first came again. Children lie within their parents.
found.spans = [...new Map(found.spans.map((span) => [span.spanId, span])).values()];
const byId = new Map(found.spans.map((span) => [span.spanId, span]));
for (const span of found.spans) {
  const parent = byId.get(span.parentSpanId);
  if (!parent) continue;
  assert.equal(parent.traceId, span.traceId);
  assert.ok(time(parent.startTimeUnixNano) <= time(span.startTimeUnixNano));
  assert.ok(time(parent.endTimeUnixNano) >= time(span.endTimeUnixNano));
}

if (what === 'run') {
  const run = found.spans.find((span) => plain(span.attributes)['brig.run_id'] === id);
  const root = byId.get(run.parentSpanId);
  const stages = found.spans.filter((span) => span.parentSpanId === run.spanId);
  const log = found.logRecords.find((record) => plain(record.attributes)['brig.run_id'] === id);
  stages.reduce((before, span) => {
    assert.ok(before <= time(span.startTimeUnixNano));
    return time(span.endTimeUnixNano);
  }, 0n);
  console.log(JSON.stringify({
    trace: run.traceId,
    root: { id: root.spanId, parent: root.parentSpanId ?? null, name: root.name, kind: root.kind, ...plain(root.attributes) },
    run: { name: run.name, ...plain(run.attributes) },
    stages: stages.map((span) => span.name),
    log: log && { trace: log.traceId, span: log.spanId, ...plain(log.attributes) },
  }));
} else {
  console.log(JSON.stringify({
    spans: found.spans.length,
    logs: found.logRecords.length,
    metrics: [...new Set(found.metrics.map((metric) => metric.name))],
    requests: requests.length,
  }));
}
