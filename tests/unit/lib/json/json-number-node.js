// SPDX-License-Identifier: Apache-2.0
// Numbers and whole documents as V8 prints them, against the canonical writer.
// usage: node json-number-node.js FILTER
'use strict';
const { execFileSync } = require('child_process');

const filter = process.argv[2];
const view = new DataView(new ArrayBuffer(8));

// A fixed sequence: a failure can be repeated.
let state = 0x9e3779b97f4a7c15n;
function random64() {
    state ^= (state << 13n) & 0xffffffffffffffffn;
    state ^= state >> 7n;
    state ^= (state << 17n) & 0xffffffffffffffffn;
    return state;
}

function fromBits(bits) {
    view.setBigUint64(0, bits);
    return view.getFloat64(0);
}

function* doubles() {
    for (let e = -1074; e <= 1023; e++)
        yield 2 ** e;
    for (let e = 0n; e < 2047n; e++) {
        yield fromBits((e << 52n) - 1n);
        yield fromBits((e << 52n) + 1n);
    }
    for (let e = -324; e <= 308; e++)
        yield Number(`1e${e}`);
    for (let i = 0; i < 8000; i++)
        yield fromBits(random64());
    for (let i = 0; i < 3000; i++)
        yield Number(random64() % 1000000000n) / 10 ** Number(random64() % 12n);
    for (let i = 0; i < 3000; i++)
        yield Number(random64() >> (random64() % 64n));
    for (let i = 0n; i < 100n; i++)
        yield Number((1n << 53n) - 50n + i);
}

function canonical(text) {
    return execFileSync(filter, { input: text, maxBuffer: 64 << 20 }).toString();
}

// What RFC 8785 says about objects, in the language it was written for: sort() compares code units.
function sorted(value) {
    if (value === null || typeof value !== 'object')
        return value;
    if (Array.isArray(value))
        return value.map(sorted);
    // Keys like "1" would jump to the front of an object, so a Map keeps the order.
    return new Map(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

function print(value) {
    if (value instanceof Map)
        return `{${[...value].map(([k, v]) => `${JSON.stringify(k)}:${print(v)}`).join(',')}}`;
    return Array.isArray(value) ? `[${value.map(print).join(',')}]` : JSON.stringify(value);
}

function numbersAgree() {
    const numbers = [...doubles()].filter((x) => Number.isFinite(x));
    // Thirty digits are never the shortest form, so the filter cannot pass by echoing.
    const input = `[${numbers.map((x) => x.toPrecision(30)).join(',')}]`;
    const got = canonical(input).slice(1, -1).split(',');
    const wrong = numbers.filter((x, i) => got[i] !== JSON.stringify(x));
    for (const x of wrong.slice(0, 10))
        console.log(`# ${x.toPrecision(30)} is not ${got[numbers.indexOf(x)]}`);
    console.log(`# ${numbers.length} numbers compared, ${wrong.length} differ`);
    return wrong.length === 0 && got.length === numbers.length;
}

function randomKey() {
    const ranges = [[0x00, 0x7f], [0x80, 0x7ff], [0x800, 0xd7ff], [0xe000, 0xffff], [0x10000, 0x10ffff]];
    let key = '';
    for (let n = random64() % 4n; n >= 0n; n--) {
        const [low, high] = ranges[Number(random64() % 5n)];
        key += String.fromCodePoint(low + Number(random64() % BigInt(high - low + 1)));
    }
    return key;
}

function keysAgree() {
    const value = [];
    for (let i = 0; i < 300; i++) {
        const object = {};
        for (let n = 0; n < i; n++)
            object[randomKey()] = randomKey();
        value.push(object);
    }
    return canonical(JSON.stringify(value)) === print(sorted(value));
}

const checks = [numbersAgree, keysAgree];
console.log(`1..${checks.length}`);
checks.forEach((check, i) => console.log(`${check() ? 'ok' : 'not ok'} ${i + 1} ${check.name}`));
