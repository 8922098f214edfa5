// Parses GBNF, llama.cpp's notation for grammars, which xgrammar's EBNF shares. Only the part that
// describes text: names of tokens are refused.

import type { CharRange } from '#inference/engines/local/grammar/regex/char-ranges.ts';
import { complement, normalise } from '#inference/engines/local/grammar/regex/char-ranges.ts';

export type Node =
  | { readonly kind: 'set'; readonly ranges: readonly CharRange[] }
  | { readonly kind: 'sequence'; readonly items: readonly Node[] }
  | { readonly kind: 'choice'; readonly options: readonly Node[] }
  | { readonly kind: 'repeat'; readonly item: Node; readonly min: number; readonly max: number }
  | { readonly kind: 'rule'; readonly name: string };

/** Why a grammar can't be used, in words that follow "the grammar". */
export class GrammarError extends Error {}

const maxRules = 2000;
const maxDepth = 50;
/** llama.cpp follows a longer repetition in more than one way at once. */
const maxRepetitions = 1000;

/** The rules by name, `root` among them. Every rule that is named is defined. */
export type Rules = ReadonlyMap<string, Node>;

interface Parser {
  readonly source: string;
  at: number;
  depth: number;
  readonly names: Set<string>;
}

export function parseGbnf(source: string): Rules {
  const parser: Parser = { source, at: 0, depth: 0, names: new Set(['root']) };
  const rules = new Map<string, Node>();
  skipSpace(parser);
  while (parser.at < source.length) {
    const name = take(parser, ruleStart)?.[1];
    if (name === undefined) throw unexpected(parser);
    if (rules.has(name)) throw new GrammarError(`defines ${name} twice`);
    if (rules.size === maxRules) throw new GrammarError(`has over ${maxRules} rules`);
    skipSpace(parser);
    rules.set(name, parseChoice(parser));
  }
  const missing = [...parser.names].find((name) => !rules.has(name));
  if (missing !== undefined) throw new GrammarError(`does not define ${missing}`);
  return rules;
}

const space = /(?:\s|#[^\n]*)*/y;
const ruleStart = /([A-Za-z0-9_-]{1,200})(?:[ \t])*::=/y;
const ruleName = /[A-Za-z0-9_-]{1,200}/y;
const repetition = /\{\s*(\d{0,6})\s*(?:(,)\s*(\d{0,6})\s*)?\}/y;

function take(parser: Parser, pattern: RegExp): RegExpExecArray | null {
  pattern.lastIndex = parser.at;
  const match = pattern.exec(parser.source);
  if (match !== null) parser.at += match[0].length;
  return match;
}

const skipSpace = (parser: Parser) => void take(parser, space);

function isAhead({ source, at }: Parser, pattern: RegExp): boolean {
  pattern.lastIndex = at;
  return pattern.test(source);
}

function unexpected({ source, at }: Parser): GrammarError {
  const line = source.slice(0, at).split('\n').length;
  const rest = source.slice(at, at + 20).split('\n')[0] ?? '';
  return new GrammarError(`can't be read in line ${line}, at ${JSON.stringify(rest)}`);
}

function parseChoice(parser: Parser): Node {
  if (++parser.depth > maxDepth) throw new GrammarError('is nested too deeply');
  const options = [parseSequence(parser)];
  while (parser.source[parser.at] === '|') {
    parser.at++;
    skipSpace(parser);
    options.push(parseSequence(parser));
  }
  parser.depth--;
  return options.length === 1 ? (options[0] as Node) : { kind: 'choice', options };
}

/** Ends before the next rule, which may begin on any line. */
function parseSequence(parser: Parser): Node {
  const items: Node[] = [];
  for (;;) {
    const char = parser.source[parser.at];
    if (char === undefined || char === '|' || char === ')' || isAhead(parser, ruleStart))
      return { kind: 'sequence', items };
    let item = parseItem(parser, char);
    skipSpace(parser);
    let stacked = 0;
    for (let next = parseRepeat(parser, item); next !== item; next = parseRepeat(parser, item)) {
      if (++stacked > maxDepth) throw new GrammarError('is nested too deeply');
      item = next;
      skipSpace(parser);
    }
    items.push(item);
  }
}

function parseItem(parser: Parser, char: string): Node {
  if (char === '"') return parseText(parser);
  if (char === '[') return { kind: 'set', ranges: parseClass(parser) };
  if (char === '.') {
    parser.at++;
    return { kind: 'set', ranges: complement([]) };
  }
  if (char === '(') {
    parser.at++;
    skipSpace(parser);
    const inner = parseChoice(parser);
    if (parser.source[parser.at] !== ')') throw unexpected(parser);
    parser.at++;
    return inner;
  }
  const name = take(parser, ruleName)?.[0];
  if (name === undefined) throw unexpected(parser);
  parser.names.add(name);
  return { kind: 'rule', name };
}

function parseRepeat(parser: Parser, item: Node): Node {
  const char = parser.source[parser.at];
  if (char === '*' || char === '+' || char === '?') {
    parser.at++;
    return { kind: 'repeat', item, min: char === '+' ? 1 : 0, max: char === '?' ? 1 : Infinity };
  }
  const match = take(parser, repetition);
  if (match === null) return item;
  const [, from, comma, to] = match;
  const min = Number(from);
  const max = comma === undefined ? min : to ? Number(to) : Infinity;
  if (min > maxRepetitions || (max !== Infinity && max > maxRepetitions))
    throw new GrammarError(`repeats something over ${maxRepetitions} times`);
  if (max < min || (comma === undefined && !from)) throw unexpected(parser);
  return { kind: 'repeat', item, min, max };
}

function parseText(parser: Parser): Node {
  parser.at++;
  const items: Node[] = [];
  for (;;) {
    if (parser.source[parser.at] === '"') break;
    const char = parseChar(parser);
    items.push({ kind: 'set', ranges: [[char, char]] });
  }
  parser.at++;
  return { kind: 'sequence', items };
}

function parseClass(parser: Parser): readonly CharRange[] {
  parser.at++;
  const isNegated = parser.source[parser.at] === '^';
  if (isNegated) parser.at++;
  const ranges: CharRange[] = [];
  while (parser.source[parser.at] !== ']') {
    const first = parseChar(parser);
    const isRange = parser.source[parser.at] === '-' && parser.source[parser.at + 1] !== ']';
    if (isRange) parser.at++;
    const last = isRange ? parseChar(parser) : first;
    if (last < first) throw unexpected(parser);
    ranges.push([first, last]);
  }
  parser.at++;
  return isNegated ? complement(ranges) : normalise(ranges);
}

const escapedChar = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([tnr\\"[\]^-]))/y;
const controls: Readonly<Record<string, number>> = { t: 9, n: 10, r: 13 };

function parseChar(parser: Parser): number {
  const { source, at } = parser;
  if (source[at] !== '\\') {
    const char = source.codePointAt(at);
    if (char === undefined) throw unexpected(parser);
    parser.at += char > 0xffff ? 2 : 1;
    return char;
  }
  const match = take(parser, escapedChar);
  if (match === null) throw unexpected(parser);
  const [, two, four, eight, plain] = match;
  if (plain !== undefined) return controls[plain] ?? plain.charCodeAt(0);
  const char = Number.parseInt(two ?? four ?? eight ?? '', 16);
  if (char > 0x10ffff) throw unexpected(parser);
  return char;
}
