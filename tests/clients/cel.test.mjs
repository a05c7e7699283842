// SPDX-License-Identifier: Apache-2.0
// Our expressions against another implementation of CEL: a table, and some thousand random ones.
// What differs on purpose is listed below, each with its reason; every other difference fails.
import {spawn} from 'node:child_process'
import {createInterface} from 'node:readline'
import {test} from 'node:test'
import assert from 'node:assert/strict'
import {Environment} from '@marcbachmann/cel-js'

const build = process.env.BRIG_BUILD ?? `${process.env.BRIG_ROOT}/build`
const vars = {
    who: 'ana', words: ['git', 'push', '--force', ''], n: 5n, big: 9223372036854775807n, yes: true,
    m: {a: 1n, b: 2n, c: 0n}, mixed: [1n, 'x', true, null, [2n]], ints: [3n, 1n, 2n, 0n],
}
const theirs = new Environment({homogeneousAggregateLiterals: false})
    .registerVariable('who', 'string').registerVariable('words', 'list')
    .registerVariable('n', 'int').registerVariable('big', 'int').registerVariable('yes', 'bool')
    .registerVariable('m', 'map').registerVariable('mixed', 'list').registerVariable('ints', 'list')

// ---- both sides ----

const encode = (value) =>
    typeof value === 'bigint' ? {int: String(value)}
        : Array.isArray(value) ? value.map(encode)
            : value && typeof value === 'object'
                ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, encode(v)])) : value

// One form for the results of both: maps as sorted pairs.
const pair = (k, v) => `${JSON.stringify(k)}: ${v}`
function plain(value) {
    if (typeof value === 'bigint') return String(value)
    if (typeof value === 'string') return JSON.stringify(value)
    if (Array.isArray(value)) return `[${value.map(plain).join(', ')}]`
    if (value instanceof Map) return `{${[...value].map(([k, v]) => pair(String(k), plain(v))).sort().join(', ')}}`
    if (value && typeof value === 'object')
        return `{${Object.entries(value).map(([k, v]) => pair(k, plain(v))).sort().join(', ')}}`
    return String(value)
}
function plainOfOurs(value) {
    if (Array.isArray(value)) return `[${value.map(plainOfOurs).join(', ')}]`
    if (value && typeof value === 'object' && 'int' in value) return value.int
    if (value && typeof value === 'object') {
        const key = (k) => (k && typeof k === 'object' ? k.int : String(k))
        return `{${value.map.map(([k, v]) => pair(key(k), plainOfOurs(v))).sort().join(', ')}}`
    }
    return typeof value === 'string' ? JSON.stringify(value) : String(value)
}

function evaluateTheirs(expr) {
    let parsed
    try {
        parsed = theirs.parse(expr)
        const checked = parsed.check()
        if (!checked.valid) return {kind: 'refused', text: checked.error.message.split('\n')[0]}
    } catch (error) {
        return {kind: 'refused', text: error.message.split('\n')[0]}
    }
    try {
        return {kind: 'value', text: plain(parsed(vars))}
    } catch (error) {
        return {kind: 'error', text: error.message.split('\n')[0]}
    }
}

async function evaluateOurs(exprs) {
    const child = spawn(`${build}/tests/unit/lib/expr/expr-lines`, {stdio: ['pipe', 'pipe', 'inherit']})
    const lines = createInterface({input: child.stdout})
    const answers = []
    const given = encode(vars)
    child.stdin.end(exprs.map((expr) => JSON.stringify({expr, vars: given})).join('\n') + '\n')
    for await (const line of lines) {
        const answer = JSON.parse(line)
        answers.push('value' in answer ? {kind: 'value', text: plainOfOurs(answer.value)}
            : 'error' in answer ? {kind: 'error', text: answer.error}
                : {kind: 'refused', text: answer.refused})
    }
    assert.equal(answers.length, exprs.length)
    return answers
}

// ---- what differs on purpose ----

const known = [
    {
        name: 'left out',
        why: 'fractions, unsigned numbers, bytes, regular expressions, times and types are no part of the subset',
        is: (expr, ours) => ours.kind === 'refused' && /subset/.test(ours.text),
    },
    {
        name: 'beyond 64 bits',
        why: 'CEL says a literal, a negation or a division that does not fit into 64 bits is an error; theirs goes on with what JavaScript makes of it',
        is: (expr, ours, other) => /not fit into 64 bits/.test(ours.text) && other.kind !== 'error',
    },
    {
        name: 'an empty number',
        why: 'int("") is an error in CEL; JavaScript makes it 0',
        is: (expr, ours, other) => ours.text === 'the text is no int' && other.kind !== 'error' && /int\(/.test(expr),
    },
    {
        name: 'types as values',
        why: 'names of types are values of CEL that the subset does not have',
        is: (expr, ours) => ours.kind === 'refused' && /unknown name "(int|string|bool|list|map|type|double|uint|bytes)"/.test(ours.text),
    },
    {
        name: 'a choice between the brackets',
        why: 'in the grammar of CEL no ? stands unbracketed between ? and :; theirs takes one',
        is: (expr, ours, other) => ours.text === '":" expected here' && (expr.match(/\?/g) ?? []).length > 1 && other.kind !== 'refused',
    },
    {
        name: 'one arithmetic',
        why: 'arithmetic on something of unknown type is int for ours, the only numbers it has; for theirs it stays unknown',
        is: (expr, ours, other) => ours.kind === 'refused' && /not (bool|string|int|list)|takes|must be of one type/.test(ours.text) && other.kind !== 'refused' && /[-+*/%]/.test(expr),
    },
    {
        name: 'a key twice',
        why: 'CEL says that is an error; theirs takes the last one',
        is: (expr, ours, other) => ours.text === 'the map has a key twice' && other.kind === 'value',
    },
    {
        name: 'seen earlier, seen later',
        why: 'which mistakes of types are found before evaluating is up to the checker: ours knows one level of a list, theirs nothing of lists declared without a type. Neither gives a value',
        is: (expr, ours, other) => ours.kind !== 'value' && other.kind !== 'value',
    },
    {
        name: 'never equal',
        why: 'ours refuses == and in between types that are never equal inside lists, theirs says false',
        is: (expr, ours, other) => ours.kind === 'refused' && /never/.test(ours.text) && other.kind === 'value',
    },
    {
        name: 'never reached',
        why: 'theirs refuses a mistake of types inside a list, ours finds it only when it is evaluated, and another side decided before',
        is: (expr, ours, other) => ours.kind === 'value' && other.kind === 'refused' && /overload|same type|must/i.test(other.text),
    },
    {
        name: 'order of characters',
        why: 'CEL compares code points, theirs UTF-16 units: they differ where one text has a character beyond U+FFFF',
        is: (expr, ours, other) => /[\u{10000}-\u{10FFFF}]/u.test(expr) && /[<>]/.test(expr),
    },
]

function judge(expr, ours, other, counts) {
    if (ours.kind === other.kind && (ours.kind !== 'value' || ours.text === other.text)) {
        counts.agree++
        counts[ours.kind]++
        return null
    }
    const reason = known.find((each) => each.is(expr, ours, other))
    if (!reason) return `${expr}\n  ours:   ${ours.kind} ${ours.text}\n  theirs: ${other.kind} ${other.text}`
    counts[reason.name] = (counts[reason.name] ?? 0) + 1
    return null
}

async function compare(exprs) {
    const ours = await evaluateOurs(exprs)
    const counts = {agree: 0, value: 0, error: 0, refused: 0}
    const differences = exprs.map((expr, i) => judge(expr, ours[i], evaluateTheirs(expr), counts)).filter(Boolean)
    assert.deepEqual(differences.slice(0, 20), [], `${differences.length} differ`)
    return counts
}

// ---- a table ----

const table = [
    '1 + 2 * 3', '(1 + 2) * 3', '7 / 2', '-7 / 2', '-7 % 3', '7 % -3', 'n / 0', 'n % 0', 'big + 1', 'big * 2', '-big - 1', '-big - 2',
    '-9223372036854775808', '9223372036854775808', '-(-9223372036854775808)', '-9223372036854775808 / -1', '0x1F', '-0x10', '--5', '- 5',
    "'a' + \"b\"", "'''a'b'''", '"""x\ny"""', "r'\\n'", "'\\n\\t\\\\'", "'\\x41\\u00e9\\U0001F600\\101'", "'\\q'", "'\\ud800'", "'a\nb'",
    "size('')", "size('é😀')", "'abc'.size()", 'size(words)', 'size(m)', 'size(n)', "who.startsWith('an')", "who.endsWith('na')", "who.contains('n')",
    "who.contains('')", 'who.contains(1)', "'a' < 'b'", "'a' < 'ab'", "'Z' < 'a'", "'z' < 'é'", "'\uFFFF' < '😀'", 'false < true', '1 < 2', "1 < 'a'",
    "who == 'ana'", 'who == 1', 'who == null', 'null == null', '1 == 1', '[1] == [1]', '[1, 2] == [2, 1]', '{} == {}', "{'a': 1} == {'a': 1}",
    "{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", "{'a': 1, 'a': 2}", "{1: 'x', true: 'y', 'z': null}", "{'a': 1}.a", "{'a': 1}['a']", "{'a': 1}.b",
    'm.a', 'm.zzz', "m['a']", "m['zzz']", 'has(m.a)', 'has(m.zzz)', 'has(m)', 'words[0]', 'words[4]', 'words[-1]', "words['a']", 'ints[n - 4]',
    "'git' in words", "'x' in words", '1 in ints', "'a' in m", "'zz' in m", "1 in 'a'", 'true && false', 'true || false', '!yes', '!!yes', '!n', 'n && yes',
    'true || n / 0 == 1', 'n / 0 == 1 || true', 'false && n / 0 == 1', 'n / 0 == 1 && false', 'n / 0 == 1 || false', 'true && n / 0 == 1',
    'yes ? 1 : 2', "yes ? 1 : 'a'", 'false ? n / 0 : 1', 'true ? 1 : n / 0', 'n ? 1 : 2', 'true ? false ? 1 : 2 : 3',
    "words.all(w, size(w) >= 0)", "words.all(w, size(w) > 0)", "words.exists(w, w == 'push')", "words.exists_one(w, w == 'push')",
    "words.filter(w, w != '')", 'ints.map(x, x * 2)', 'ints.map(x, x > 1, x * x)', 'ints.exists(x, 6 / x == 2)', 'ints.all(x, 6 / x > 100)',
    'ints.exists_one(x, 6 / x == 2)', 'ints.filter(x, 6 / x > 0)', 'm.all(k, m[k] >= 0)', 'm.exists(k, m[k] == 2)', '[].all(x, x)', '[].exists(x, true)',
    '[1].all(x, [2].all(x, x == 2) && x == 1)', '[[1, 2], [3]].map(l, l.size())', 'int("42")', 'int("-42")', 'int("x")', 'int("")', 'int(n)',
    'string(n)', 'string(yes)', "string('x')", 'string(-9223372036854775808)', 'mixed[0] + 1', "mixed[1] + 'y'", 'mixed[2] && true', 'mixed[4][0]',
    'mixed == mixed', 'mixed.exists(x, x == 1)', "mixed.filter(x, x == 'x')", 'nobody', 'nobody.x', 'who.nothing()', 'who.', '1 +', '(1', '[1', '{1', "'a", 'a b',
    '1 2', '&&', '', '   ', '// only a comment', '1 // and one', '[1, 2, ]', "{'a': 1, }", 'size([1, 2], 3)', 'in', 'if', 'true false', '1..2', 'who[0]',
    '1.5', '1u', "b'x'", "who.matches('a')", 'timestamp("2024-01-01T00:00:00Z")', 'duration("1s")', 'type(1)', 'double(1)', 'uint(1)', 'dyn(1)', 'n == 5 == true',
    '1 < 2 == true', '2 - 1 - 1', '8 / 2 / 2', '-n', '-who', '-m.a', '!has(m.zzz) && m.a == 1', 'yes == !yes', '[1, 2][0] + {"a": 3}.a', '"\\"" + \'\\\'\'', "'\\303'",
]

test('the table has the same results, or differs for a reason that is written down', async (t) => {
    t.diagnostic(JSON.stringify(await compare(table)))
})

// ---- random ones ----

let state = 0n
const draw = (n) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xFFFFFFFFFFFFFFFFn
    return Number(state >> 33n) % n
}
const of = (list) => list[draw(list.length)]
const locals = []

const leaves = {
    int: () => of(['0', '1', '2', '7', '-3', '0x10', 'n', 'big', 'm.a', "m['b']", 'ints[1]', '9223372036854775807', '-9223372036854775808']),
    string: () => of(["''", "'a'", "'ana'", '"--"', "r'\\d'", "'é'", 'who', 'words[0]', 'words[3]']),
    bool: () => of(['true', 'false', 'yes']),
    ints: () => of(['ints', '[1, 2, 3]', '[]', '[n, 0]']),
    strings: () => of(['words', "['a', who]", '[]']),
}
const makers = {
    int: [(d) => `${make('int', d)} ${of(['+', '-', '*', '/', '%'])} ${make('int', d)}`, (d) => `(${make('int', d)})`, (d) => `-${leaves.int()}`,
        (d) => `size(${make(of(['string', 'ints', 'strings']), d)})`, (d) => `(${make('bool', d)} ? ${make('int', d)} : ${make('int', d)})`,
        (d) => `${of(['ints', '[4, 5, 6]'])}[${make('int', d)}]`, (d) => `int(string(${make('int', d)}))`],
    string: [(d) => `${make('string', d)} + ${make('string', d)}`, (d) => `string(${make(of(['int', 'bool']), d)})`,
        (d) => `(${make('bool', d)} ? ${make('string', d)} : ${make('string', d)})`, (d) => `words[${make('int', d)}]`],
    bool: [(d) => `${make('bool', d)} ${of(['&&', '||'])} ${make('bool', d)}`, (d) => `!(${make('bool', d)})`, (d) => `(${make('bool', d)})`,
        (d) => { const t = of(['int', 'string', 'bool']); return `(${make(t, d)}) ${of(['==', '!=', '<', '<=', '>', '>='])} (${make(t, d)})` },
        (d) => `(${make('ints', d)}) == (${make('ints', d)})`, (d) => `(${make('int', d)}) in ${make('ints', d)}`, (d) => `(${make('string', d)}) in ${make('strings', d)}`,
        (d) => `(${make('string', d)}).${of(['startsWith', 'endsWith', 'contains'])}(${make('string', d)})`,
        (d) => loop(d, of(['all', 'exists', 'exists_one']), 'bool'), (d) => `has(m.${of(['a', 'zz'])})`, (d) => `${of(["'a'", "'q'"])} in m`],
    ints: [(d) => `${make('ints', d)} + ${make('ints', d)}`, (d) => `[${make('int', d)}, ${make('int', d)}]`, (d) => loop(d, 'filter', 'bool'), (d) => loop(d, 'map', 'int')],
    strings: [(d) => `[${make('string', d)}, ${make('string', d)}]`, (d) => `${make('strings', d)} + ${make('strings', d)}`],
}

function loop(depth, macro, type) {
    const range = make('ints', depth - 1)
    const name = of(['x', 'y'])
    locals.push(name)
    const body = make(type, depth - 1)
    locals.pop()
    return `(${range}).${macro}(${name}, ${body})`
}

function make(type, depth) {
    const kind = draw(40) === 0 ? of(['int', 'string', 'bool', 'ints']) : type // a mistake now and then
    if (depth <= 0 || draw(4) === 0) return kind === 'int' && locals.length && draw(2) ? of(locals) : leaves[kind]()
    return of(makers[kind])(depth - 1)
}

// Texts that are cut, doubled or mixed up: what is no expression is one for neither.
function damage(expr) {
    const at = draw(expr.length)
    const how = draw(3)
    if (how === 0) return expr.slice(0, at)
    if (how === 1) return expr.slice(0, at) + of(['(', ')', ']', '&&', '+', ' ', "'", '.', ',', '?', ':', 'in', '!']) + expr.slice(at)
    return expr.slice(0, at) + expr.slice(at + 1 + draw(3))
}

test('random expressions have the same results', async (t) => {
    const exprs = []
    state = 20261116n
    while (exprs.length < 6000) {
        const expr = make(of(['bool', 'bool', 'int', 'string', 'ints', 'strings']), 4)
        if (expr.length < 1000) exprs.push(exprs.length % 5 === 4 ? damage(expr) : expr)
    }
    const counts = await compare(exprs)
    t.diagnostic(JSON.stringify(counts))
    assert.ok(counts.value > 2000 && counts.error > 300 && counts.refused > 500, JSON.stringify(counts))
})
