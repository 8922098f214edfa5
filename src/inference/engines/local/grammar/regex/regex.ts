// Parses the part of ECMAScript's regular expressions (`u` flag) that describes a regular language. Lookaheads are
// supported at the very beginning, where they only mean "and" or "and not". Other lookaheads, lookbehinds,
// backreferences and word boundaries are refused.
//
// @eslint-community/regexpp and refa 0.12.1 are not used instead. refa bounds the nodes of an automaton but not the
// work until it has them: `(?:[一-帀]0|[丁-币]1|...){1,8}` with 150 overlapping classes (1,248 characters) took it
// 10 s until "not allowed to create more than 3000 nodes", and 0.02 s here until "is too complex"; with {1,5} it took
// 12 s, and 1.4 s here until the work limit of the whole grammar. Anchors, lookaheads, lengths and excluded names
// would stay ours, which is about half of these 660 lines.

import { type CharRange, classEscapes, complement, lineEnds, normalise } from './char-ranges.ts';

export type Regex =
  | { readonly kind: 'set'; readonly ranges: readonly CharRange[] }
  | { readonly kind: 'sequence'; readonly items: readonly Regex[] }
  | { readonly kind: 'choice'; readonly options: readonly Regex[] }
  | { readonly kind: 'repeat'; readonly item: Regex; readonly min: number; readonly max: number }
  | { readonly kind: 'look'; readonly item: Regex; readonly negative: boolean }
  | { readonly kind: 'start' | 'end' };

/** The strings in which `whole` is spelled out, less those that a lookahead forbids. */
export interface Language {
  readonly whole: Regex;
  readonly looks: readonly { readonly whole: Regex; readonly negative: boolean }[];
}

/** Why a pattern can't be used, in words that follow its name: `'pattern' is too complex`. */
export class PatternError extends Error {}

const maxPatternLength = 2000;

/**
 * The language of whole strings in which `source` is found, with what surrounds the match spelled out; with `isWhole`,
 * of the strings that match from their start to their end.
 */
export function parseRegex(source: string, isWhole = false): Language {
  if (source.length > maxPatternLength) throw new PatternError('is too long');
  try {
    new RegExp(source, 'u');
  } catch {
    throw new PatternError('is not a regular expression');
  }
  const parser = { chars: [...source], at: 0, depth: 0 };
  const regex = parseChoice(parser);
  const around = isWhole ? [] : [anything];
  const items = itemsOf(isWhole ? fromStart(regex) : regex);
  if (items[0]?.kind !== 'start') return { whole: surround(regex, around), looks: [] };
  const rest = items.slice(1);
  const looks: Language['looks'][number][] = [];
  for (let look = rest[0]; look?.kind === 'look'; look = rest[0]) {
    looks.push({ whole: surround(fromStart(look.item), [anything]), negative: look.negative });
    rest.shift();
  }
  return { whole: surround({ kind: 'sequence', items: [items[0], ...rest] }, around), looks };
}

/** Anchors a lookahead at the start, where it stands. */
function fromStart(regex: Regex): Regex {
  if (regex.kind === 'choice') return { kind: 'choice', options: regex.options.map(fromStart) };
  const items = itemsOf(regex);
  if (items[0]?.kind === 'start') return regex;
  return { kind: 'sequence', items: [{ kind: 'start' }, ...items] };
}

interface Parser {
  readonly chars: readonly string[];
  at: number;
  depth: number;
}

const anything: Regex = {
  kind: 'repeat',
  item: { kind: 'set', ranges: complement([]) },
  min: 0,
  max: Infinity,
};

/** Adds `around` at each end of the regex that has no anchor. */
function surround(regex: Regex, around: readonly Regex[]): Regex {
  if (regex.kind === 'choice')
    return { kind: 'choice', options: regex.options.map((option) => surround(option, around)) };
  const items = itemsOf(regex);
  const [head, tail] = [items[0], items.at(-1)];
  // An anchor inside a group at either end belongs to some of the group's options: spell them out.
  if (head?.kind === 'choice' && hasCondition(head)) {
    return spread(head, around, (option) => [...itemsOf(option), ...items.slice(1)]);
  }
  if (tail?.kind === 'choice' && hasCondition(tail)) {
    return spread(tail, around, (option) => [...items.slice(0, -1), ...itemsOf(option)]);
  }
  const opens = items[0]?.kind === 'start';
  const closes = items.at(-1)?.kind === 'end';
  const inner = items.slice(opens ? 1 : 0, closes ? -1 : undefined);
  if (inner.some(hasCondition)) {
    throw new PatternError('has an anchor or a lookahead in its middle');
  }
  return {
    kind: 'sequence',
    items: [...(opens ? [] : around), ...inner, ...(closes ? [] : around)],
  };
}

function spread(
  group: Regex & { kind: 'choice' },
  around: readonly Regex[],
  toItems: (option: Regex) => Regex[],
): Regex {
  const options = group.options.map((option) =>
    surround({ kind: 'sequence', items: toItems(option) }, around),
  );
  return { kind: 'choice', options };
}

function itemsOf(regex: Regex): readonly Regex[] {
  return regex.kind === 'sequence' ? regex.items : [regex];
}

function hasCondition(regex: Regex): boolean {
  if (regex.kind === 'sequence') return regex.items.some(hasCondition);
  if (regex.kind === 'choice') return regex.options.some(hasCondition);
  if (regex.kind === 'repeat') return hasCondition(regex.item);
  return regex.kind !== 'set';
}

function parseChoice(parser: Parser): Regex {
  if (++parser.depth > 50) throw new PatternError('is nested too deeply');
  const options = [parseSequence(parser)];
  while (parser.chars[parser.at] === '|') {
    parser.at++;
    options.push(parseSequence(parser));
  }
  parser.depth--;
  return options.length === 1 ? options[0]! : { kind: 'choice', options };
}

function parseSequence(parser: Parser): Regex {
  const items: Regex[] = [];
  for (;;) {
    const char = parser.chars[parser.at];
    if (char === undefined || char === '|' || char === ')') return { kind: 'sequence', items };
    items.push(parseQuantifier(parser, parseAtom(parser)));
  }
}

function parseQuantifier(parser: Parser, item: Regex): Regex {
  const rest = parser.chars.slice(parser.at, parser.at + 24).join('');
  const match = /^(?:([*+?])|\{(\d+)(,(\d*))?\})\??/.exec(rest);
  if (!match) return item;
  parser.at += match[0].length;
  const [, sign, from, comma, to] = match;
  if (sign) {
    return { kind: 'repeat', item, min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Infinity };
  }
  const min = Number(from);
  return { kind: 'repeat', item, min, max: comma ? (to ? Number(to) : Infinity) : min };
}

function parseAtom(parser: Parser): Regex {
  const char = parser.chars[parser.at++]!;
  if (char === '^') return { kind: 'start' };
  if (char === '$') return { kind: 'end' };
  if (char === '.') return { kind: 'set', ranges: complement(lineEnds) };
  if (char === '(') return parseGroup(parser);
  if (char === '[') return { kind: 'set', ranges: parseClass(parser) };
  if (char === '\\') {
    const escaped = parseEscape(parser);
    return { kind: 'set', ranges: typeof escaped === 'number' ? [[escaped, escaped]] : escaped };
  }
  const codePoint = char.codePointAt(0)!;
  return { kind: 'set', ranges: [[codePoint, codePoint]] };
}

function parseGroup(parser: Parser): Regex {
  let looks = false;
  let negative = false;
  if (parser.chars[parser.at] === '?') {
    const opening = parser.chars.slice(parser.at, parser.at + 3).join('');
    if (opening.startsWith('?:')) parser.at += 2;
    else if (/^\?<[^=!]/.test(opening)) parser.at = parser.chars.indexOf('>', parser.at) + 1;
    else if (/^\?[=!]/.test(opening)) parser.at += 2;
    else throw new PatternError('uses a lookbehind or a flag group');
    looks = /^\?[=!]/.test(opening);
    negative = opening[1] === '!';
  }
  const inner = parseChoice(parser);
  parser.at++;
  return looks ? { kind: 'look', item: inner, negative } : inner;
}

function parseClass(parser: Parser): readonly CharRange[] {
  const negated = parser.chars[parser.at] === '^';
  if (negated) parser.at++;
  const ranges: CharRange[] = [];
  while (parser.chars[parser.at] !== ']') {
    const first = parseClassAtom(parser);
    if (typeof first !== 'number') {
      ranges.push(...first);
      continue;
    }
    if (parser.chars[parser.at] !== '-' || parser.chars[parser.at + 1] === ']') {
      ranges.push([first, first]);
      continue;
    }
    parser.at++;
    ranges.push([first, parseClassAtom(parser) as number]);
  }
  parser.at++;
  return negated ? complement(ranges) : normalise(ranges);
}

function parseClassAtom(parser: Parser): number | readonly CharRange[] {
  const char = parser.chars[parser.at++]!;
  if (char !== '\\') return char.codePointAt(0)!;
  if (parser.chars[parser.at] === 'b') {
    parser.at++;
    return 8;
  }
  return parseEscape(parser);
}

function parseEscape(parser: Parser): number | readonly CharRange[] {
  const char = parser.chars[parser.at++]!;
  const set = classEscapes[char.toLowerCase()];
  if (set) return char === char.toLowerCase() ? set : complement(set);
  const control = controlEscapes[char];
  if (control !== undefined) return control;
  const rest = parser.chars.slice(parser.at, parser.at + 10).join('');
  const hex =
    char === 'x'
      ? /^([0-9a-fA-F]{2})/.exec(rest)
      : char === 'u'
        ? (/^([0-9a-fA-F]{4})/.exec(rest) ?? /^\{([0-9a-fA-F]+)\}/.exec(rest))
        : null;
  if (hex) {
    parser.at += hex[0].length;
    const codePoint = Number.parseInt(hex[1]!, 16);
    if (codePoint >= 0xd800 && codePoint <= 0xdfff) throw new PatternError('names a surrogate');
    return codePoint;
  }
  if (/[bBkcpP1-9]/.test(char)) throw new PatternError(`uses \\${char}`);
  return char.codePointAt(0)!;
}

const controlEscapes: Record<string, number> = { n: 10, r: 13, t: 9, v: 11, f: 12, 0: 0 };
