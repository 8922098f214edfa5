// Turns a Lark grammar into a regular expression, if its rules don't refer to themselves. Engines enforce a regular
// expression as the pattern of a schema. Grammars of another form are explained to the model in words.

import { type Token, tokenize, toSource } from './lark-tokens.ts';

type Node =
  | { readonly kind: 'source'; readonly source: string }
  | { readonly kind: 'rule'; readonly name: string }
  | { readonly kind: 'all' | 'any'; readonly nodes: readonly Node[] }
  | { readonly kind: 'repeated'; readonly node: Node; readonly quantifier: string };

class Unsupported extends Error {}

const maxPatternLength = 32_768;
const maxDepth = 64;

/** Null if the grammar is not regular, or has something that is not supported here. */
export function toPattern(grammar: string): string | null {
  try {
    const rules = new Parser(tokenize(grammar)).parse();
    const source = new Expansion(rules).toText({ kind: 'rule', name: 'start' });
    new RegExp(source, 'u');
    return source;
  } catch {
    return null;
  }
}

/** Rules as sources of regular expressions, each expanded once. */
class Expansion {
  readonly #rules: ReadonlyMap<string, Node>;
  /** Null while a rule is being expanded. */
  readonly #sources = new Map<string, string | null>();

  constructor(rules: ReadonlyMap<string, Node>) {
    this.#rules = rules;
  }

  toText(node: Node): string {
    const source = this.#expand(node);
    if (source.length > maxPatternLength) fail();
    return source;
  }

  #expand(node: Node): string {
    switch (node.kind) {
      case 'source':
        return node.source;
      case 'rule':
        return this.#toRule(node.name);
      case 'all':
        return this.#join(node.nodes, '');
      case 'any':
        return `(${this.#join(node.nodes, '|')})`;
      case 'repeated':
        return `(${this.toText(node.node)})${node.quantifier}`;
    }
  }

  /** Fails before the text is long: a grammar of 10 KB may name a rule of 32 KB thousands of times. */
  #join(nodes: readonly Node[], separator: string): string {
    let text = '';
    for (const [at, node] of nodes.entries()) {
      text += `${at === 0 ? '' : separator}${this.toText(node)}`;
      if (text.length > maxPatternLength) fail();
    }
    return text;
  }

  #toRule(name: string): string {
    const known = this.#sources.get(name);
    const rule = this.#rules.get(name);
    // A rule that is being expanded refers to itself.
    if (known === null || rule === undefined) fail();
    if (known !== undefined) return known;
    this.#sources.set(name, null);
    const source = this.toText(rule);
    this.#sources.set(name, source);
    return source;
  }
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[] | null) {
    if (tokens === null) throw new Unsupported();
    this.#tokens = tokens;
  }

  parse(): Map<string, Node> {
    const rules = new Map<string, Node>();
    while (this.#at < this.#tokens.length) {
      const { kind, text } = this.#take();
      if (kind === 'import') {
        for (const [name, source] of toSource(text) ?? fail())
          rules.set(name, { kind: 'source', source });
      } else if (kind === 'definition') rules.set(text, this.#alternatives());
      else fail();
    }
    return rules;
  }

  #alternatives(depth = 0): Node {
    if (depth > maxDepth) fail();
    const nodes = [this.#sequence(depth)];
    while (this.#skip('|')) nodes.push(this.#sequence(depth));
    return nodes.length === 1 ? (nodes[0] as Node) : { kind: 'any', nodes };
  }

  #sequence(depth: number): Node {
    const nodes: Node[] = [];
    for (let item = this.#item(depth); item !== null; item = this.#item(depth)) nodes.push(item);
    return { kind: 'all', nodes };
  }

  #item(depth: number): Node | null {
    const node = this.#atom(depth);
    const next = this.#tokens[this.#at];
    if (node === null || next?.kind !== 'quantifier') return node;
    this.#at++;
    return { kind: 'repeated', node, quantifier: next.text };
  }

  #atom(depth: number): Node | null {
    const { kind, text } = this.#tokens[this.#at] ?? { kind: 'end', text: '' };
    if (kind === 'source') {
      this.#at++;
      return { kind, source: text };
    }
    if (kind === 'name') {
      this.#at++;
      return { kind: 'rule', name: text };
    }
    if (this.#skip('(')) return this.#closed(depth, ')');
    if (!this.#skip('[')) return null;
    return { kind: 'repeated', node: this.#closed(depth, ']'), quantifier: '?' };
  }

  #closed(depth: number, end: string): Node {
    const node = this.#alternatives(depth + 1);
    if (!this.#skip(end)) fail();
    return { kind: 'any', nodes: [node] };
  }

  #skip(text: string): boolean {
    const token = this.#tokens[this.#at];
    const isNext = token?.kind === 'mark' && token.text === text;
    if (isNext) this.#at++;
    return isNext;
  }

  #take(): Token {
    return this.#tokens[this.#at++] ?? fail();
  }
}

function fail(): never {
  throw new Unsupported();
}
