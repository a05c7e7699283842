// SPDX-License-Identifier: Apache-2.0
// The expression of bench/decide.c, evaluated by a JavaScript CEL: the peer.
import {createRequire} from 'node:module'
import {pathToFileURL} from 'node:url'

const require = createRequire(new URL('../../sdk/typescript/package.json', import.meta.url))
const {Environment} = await import(pathToFileURL(require.resolve('@marcbachmann/cel-js')).href)
const env = new Environment()
    .registerVariable('command', 'list<string>').registerVariable('principal', 'string').registerVariable('risk', 'int')
const expr = env.parse("size(command) > 2 && command.exists(w, w.startsWith('--')) && !(principal in ['ana', 'ben']) && risk <= 2")
const vars = {command: ['git', 'push', '--force'], principal: 'eve', risk: 0n}
let holds
for (let i = 0; i < 50000; i++) holds = expr(vars)
const start = process.hrtime.bigint()
for (let i = 0; i < 300000; i++) holds = expr(vars)
console.log(`the same by @marcbachmann/cel-js: ${(process.hrtime.bigint() - start) / 300000n} ns (${holds})`)
