// SPDX-License-Identifier: Apache-2.0

// RFC 8785 canonical JSON, and a reader as strict as a verifier has to be. JSON.parse takes the last
// of two members with one name and rounds large numbers: two readers of one receipt could see two
// receipts.

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

const LONE_SURROGATE = /\p{Surrogate}/u;

function canonicalText(text: string): string {
  if (LONE_SURROGATE.test(text)) throw new TypeError("a text with half a character");
  return JSON.stringify(text); // escapes exactly what the RFC wants escaped
}

function canonicalNumber(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError("a number that JSON does not have");
  return Object.is(value, -0) ? "0" : String(value); // the RFC's form is ECMAScript's own
}

/** The one text for a value; a TypeError for what JSON cannot say. */
export function canonicalize(value: unknown): string {
  switch (typeof value) {
    case "string":
      return canonicalText(value);
    case "number":
      return canonicalNumber(value);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      if (value === null) return "null";
      if (Array.isArray(value)) return `[${value.map(canonicalize).join(",")}]`;
      return canonicalObject(value as Record<string, unknown>);
    default:
      throw new TypeError(`JSON has no ${typeof value}`);
  }
}

function canonicalObject(object: Record<string, unknown>): string {
  const members = Object.keys(object)
    .sort() // by UTF-16 code units, as the RFC wants
    .map((name) => `${canonicalText(name)}:${canonicalize(object[name])}`);
  return `{${members.join(",")}}`;
}

/** What is wrong with a text, and whether it is right as far as it goes. */
export class JsonError extends Error {
  readonly incomplete: boolean;

  constructor(message: string, incomplete: boolean) {
    super(message);
    this.name = "JsonError";
    this.incomplete = incomplete;
  }
}

const DEPTH_MAX = 64;
const INTEGER = /-?(?:0|[1-9][0-9]*)/y;
const WORDS: readonly [string, boolean][] = [
  ["true", true],
  ["false", false],
];

class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  document(): Json {
    this.blanks();
    const value = this.value(0);
    this.blanks();
    if (this.at < this.text.length) throw this.wrong("something stands behind the value");
    return value;
  }

  private wrong(what: string): JsonError {
    return new JsonError(`${what} at character ${this.at + 1}`, this.at >= this.text.length);
  }

  private blanks(): void {
    while (" \t\r\n".includes(this.text[this.at] ?? "x")) this.at++;
  }

  private take(character: string): boolean {
    if (this.text[this.at] !== character) return false;
    this.at++;
    return true;
  }

  private want(character: string): void {
    if (!this.take(character)) throw this.wrong(`"${character}" is missing`);
  }

  private value(depth: number): Json {
    if (depth > DEPTH_MAX) throw new JsonError("nested too deeply", false);
    const first = this.text[this.at];
    if (first === "{") return this.object(depth);
    if (first === "[") return this.array(depth);
    if (first === '"') return this.string();
    if (first === "-" || (first !== undefined && first >= "0" && first <= "9")) return this.integer();
    return this.word();
  }

  private word(): boolean {
    for (const [name, value] of WORDS) {
      const rest = this.text.slice(this.at, this.at + name.length);
      if (rest === name) {
        this.at += name.length;
        return value;
      }
      if (rest.length < name.length && name.startsWith(rest)) this.at = this.text.length;
    }
    throw this.wrong("not a value of a receipt");
  }

  private integer(): number {
    INTEGER.lastIndex = this.at;
    const found = INTEGER.exec(this.text)?.[0];
    if (found === undefined) {
      this.at++;
      throw this.wrong("a number without digits");
    }
    this.at += found.length;
    if (/[.eE0-9]/.test(this.text[this.at] ?? "")) throw new JsonError("a number that is no integer", false);
    const value = Number(found);
    if (!Number.isSafeInteger(value)) throw new JsonError("an integer beyond 2^53-1", false);
    return value;
  }

  private string(): string {
    const begin = this.at++;
    for (; this.text[this.at] !== '"'; this.at++) {
      const character = this.text[this.at];
      if (character === undefined) throw this.wrong("a text without an end");
      if (character < " ") throw this.wrong("a control character in a text");
      if (character === "\\") this.escape();
    }
    this.at++;
    const text = JSON.parse(this.text.slice(begin, this.at)) as string;
    if (LONE_SURROGATE.test(text)) throw new JsonError("half a character", false);
    return text;
  }

  /* At the backslash; ends at the last character of the escape. */
  private escape(): void {
    this.at++;
    const kind = this.text[this.at];
    if (kind === "u") {
      for (let i = 0; i < 4; i++) {
        this.at++;
        if (!/[0-9a-fA-F]/.test(this.text[this.at] ?? "")) throw this.wrong("a malformed escape");
      }
    } else if (kind === undefined || !'"\\/bfnrt'.includes(kind)) {
      throw this.wrong("a malformed escape");
    }
  }

  private array(depth: number): Json[] {
    const list: Json[] = [];
    this.want("[");
    this.blanks();
    if (this.take("]")) return list;
    for (;;) {
      this.blanks();
      list.push(this.value(depth + 1));
      this.blanks();
      if (this.take("]")) return list;
      this.want(",");
    }
  }

  private object(depth: number): { [name: string]: Json } {
    const object: { [name: string]: Json } = Object.create(null) as { [name: string]: Json };
    this.want("{");
    this.blanks();
    if (this.take("}")) return object;
    for (;;) {
      this.blanks();
      if (this.text[this.at] !== '"') throw this.wrong("the name of a member is missing");
      const name = this.string();
      if (name in object) throw new JsonError(`duplicate name "${name}"`, false);
      this.blanks();
      this.want(":");
      this.blanks();
      object[name] = this.value(depth + 1);
      this.blanks();
      if (this.take("}")) return object;
      this.want(",");
    }
  }
}

/** JSON as receipts hold it: RFC 8259, every name once, integers only, no null. */
export function parseStrict(bytes: Uint8Array): Json {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return new Reader(cutWhole(bytes)).document(); // wrong in its own way, or cut inside a character
  }
  return new Reader(text).document();
}

/* Without the character that is cut off at the end; anything else that is no UTF-8 is an error. */
function cutWhole(bytes: Uint8Array): string {
  for (let cut = 1; cut <= 3 && cut < bytes.length; cut++) {
    const lead = bytes[bytes.length - cut] ?? 0;
    if (lead >= 0x80 && lead < 0xc0) continue; // what follows a lead
    if (lead < 0xc2 || lead > 0xf4) break;
    const wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (cut >= wanted) break;
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
        bytes.subarray(0, bytes.length - cut),
      );
    } catch {
      break;
    }
  }
  throw new JsonError("not UTF-8", false);
}
