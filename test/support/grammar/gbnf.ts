// A reader of GBNF that shares nothing with the code under test: it derives random texts from a grammar
// and checks whether a text belongs to it. Follows llama.cpp's grammars/README.md.

export type Node =
  | { readonly kind: 'chars'; readonly text: string }
  | { readonly kind: 'class'; readonly ranges: readonly (readonly [number, number])[] }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'all'; readonly parts: readonly Node[] }
  | { readonly kind: 'any'; readonly parts: readonly Node[] }
  | { readonly kind: 'times'; readonly part: Node; readonly min: number; readonly max: number };

export type Grammar = ReadonlyMap<string, Node>;

export function readGrammar(source: string): Grammar {
  const grammar = new Map<string, Node>();
  for (const line of source.split('\n').filter(Boolean)) {
    const match = /^([a-zA-Z0-9-]+) ::= (.*)$/s.exec(line);
    if (!match) throw new Error(`not a rule: ${line}`);
    const reader = { source: match[2]!, at: 0 };
    grammar.set(match[1]!, readAny(reader));
    if (reader.at !== reader.source.length) throw new Error(`left over in: ${line}`);
  }
  for (const node of grammar.values()) checkNames(node, grammar);
  return grammar;
}

interface Reader {
  readonly source: string;
  at: number;
}

function checkNames(node: Node, grammar: Grammar): void {
  if (node.kind === 'name' && !grammar.has(node.name)) throw new Error(`no rule ${node.name}`);
  if (node.kind === 'all' || node.kind === 'any') {
    for (const part of node.parts) checkNames(part, grammar);
  }
  if (node.kind === 'times') checkNames(node.part, grammar);
}

function readAny(reader: Reader): Node {
  const parts = [readAll(reader)];
  while (reader.source[reader.at] === '|') {
    reader.at++;
    parts.push(readAll(reader));
  }
  return { kind: 'any', parts };
}

function readAll(reader: Reader): Node {
  const parts: Node[] = [];
  for (;;) {
    while (reader.source[reader.at] === ' ') reader.at++;
    const char = reader.source[reader.at];
    if (char === undefined || char === '|' || char === ')') return { kind: 'all', parts };
    parts.push(readTimes(reader, readOne(reader)));
  }
}

function readOne(reader: Reader): Node {
  const char = reader.source[reader.at]!;
  if (char === '(') {
    reader.at++;
    const inner = readAny(reader);
    reader.at++;
    return inner;
  }
  if (char === '"' || char === '[') {
    const close = char === '"' ? '"' : ']';
    reader.at++;
    const points: number[] = [];
    const ranges: [number, number][] = [];
    while (reader.source[reader.at] !== close) {
      const point = readChar(reader);
      points.push(point);
      if (close === ']' && reader.source[reader.at] === '-') {
        reader.at++;
        ranges.push([point, readChar(reader)]);
      } else ranges.push([point, point]);
    }
    reader.at++;
    if (close === ']') return { kind: 'class', ranges };
    return { kind: 'chars', text: String.fromCodePoint(...points) };
  }
  const name = /^[a-zA-Z0-9-]+/.exec(reader.source.slice(reader.at))?.[0];
  if (!name) throw new Error(`unexpected ${reader.source.slice(reader.at, reader.at + 20)}`);
  reader.at += name.length;
  return { kind: 'name', name };
}

function readChar(reader: Reader): number {
  const rest = reader.source.slice(reader.at, reader.at + 10);
  const hex = /^\\(?:x(..)|u(....)|U(........))/.exec(rest);
  if (hex) {
    reader.at += hex[0].length;
    return Number.parseInt(hex[1] ?? hex[2] ?? hex[3]!, 16);
  }
  if (rest.startsWith('\\')) {
    const meant = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\' }[rest[1]!];
    if (!meant) throw new Error(`unknown escape ${rest}`);
    reader.at += 2;
    return meant.charCodeAt(0);
  }
  const point = rest.codePointAt(0)!;
  reader.at += String.fromCodePoint(point).length;
  return point;
}

function readTimes(reader: Reader, part: Node): Node {
  const match = /^(?:([*+?])|\{(\d+)(,?)(\d*)\})/.exec(
    reader.source.slice(reader.at, reader.at + 24),
  );
  if (!match) return part;
  reader.at += match[0].length;
  if (match[1]) {
    return {
      kind: 'times',
      part,
      min: match[1] === '+' ? 1 : 0,
      max: match[1] === '?' ? 1 : Infinity,
    };
  }
  const min = Number(match[2]);
  const max = match[4] ? Number(match[4]) : match[3] ? Infinity : min;
  // llama.cpp would refuse the first and read the second as unbounded.
  if (min > 2000 || (max !== Infinity && max > 2000)) throw new Error('repetition over 2000');
  return { kind: 'times', part, min, max };
}
