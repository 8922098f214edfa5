// Texts of a grammar: random derivations that always come to an end, and membership.

import type { Grammar, Node } from './gbnf.ts';

export interface Taste {
  /** From 0 to 1. */
  readonly random: () => number;
  /** Characters after which the shortest way out is taken. */
  readonly length: number;
  /** How many times something unbounded is repeated at most. */
  readonly repeat: number;
  /** Prefer the longest option and characters at the edges of their class. */
  readonly extreme: boolean;
}

export function createWriter(grammar: Grammar): (taste: Taste) => string {
  const costs = shortestTexts(grammar);
  const costOf = (node: Node) => cost(node, costs);
  return ({ random, length, repeat, extreme }) => {
    let out = '';
    const todo: Node[] = [{ kind: 'name', name: 'root' }];
    const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]!;
    for (let node = todo.pop(); node; node = todo.pop()) {
      const hurry = out.length > length;
      if (node.kind === 'chars') out += node.text;
      if (node.kind === 'class') {
        const [first, last] = pick(node.ranges);
        const edge = extreme
          ? random() < 0.5
            ? first
            : last
          : first + Math.floor(random() * (last - first + 1));
        out += String.fromCodePoint(random() < 0.7 ? Math.min(edge, first + 90) : edge);
      }
      if (node.kind === 'name') todo.push(grammar.get(node.name)!);
      if (node.kind === 'all') todo.push(...node.parts.toReversed());
      if (node.kind === 'any') {
        const sorted = node.parts.toSorted((a, b) => costOf(a) - costOf(b));
        const finite = sorted.filter((part) => costOf(part) < Infinity);
        todo.push(hurry ? finite[0]! : extreme && random() < 0.5 ? finite.at(-1)! : pick(finite));
      }
      if (node.kind === 'times') {
        const most = Math.max(
          node.min,
          Math.min(node.max, node.min + repeat, extreme ? node.max : 2000),
        );
        const top = extreme && node.max !== Infinity ? node.max : most;
        const count = hurry
          ? node.min
          : extreme && random() < 0.6
            ? top
            : node.min + Math.floor(random() * (most - node.min + 1));
        for (let times = 0; times < count; times++) todo.push(node.part);
      }
    }
    return out;
  };
}

function shortestTexts(grammar: Grammar): Map<string, number> {
  const costs = new Map([...grammar.keys()].map((name) => [name, Infinity]));
  for (let changed = true; changed; ) {
    changed = false;
    for (const [name, node] of grammar) {
      const now = cost(node, costs);
      if (now < costs.get(name)!) {
        costs.set(name, now);
        changed = true;
      }
    }
  }
  return costs;
}

function cost(node: Node, costs: ReadonlyMap<string, number>): number {
  switch (node.kind) {
    case 'chars':
      return node.text.length;
    case 'class':
      return 1;
    case 'name':
      return costs.get(node.name)!;
    case 'all':
      return node.parts.reduce((sum, part) => sum + cost(part, costs), 0);
    case 'any':
      return Math.min(...node.parts.map((part) => cost(part, costs)));
    case 'times':
      return node.min === 0 ? 0 : node.min * cost(node.part, costs);
  }
}

interface Rest {
  readonly node: Node;
  readonly next: Rest | null;
}

/** Whether the whole text belongs to the grammar: all ways to go on are followed side by side. */
export function belongs(grammar: Grammar, text: string): boolean {
  const numbers = new Map<unknown, number>();
  const numberOf = (part: unknown) => {
    if (!numbers.has(part)) numbers.set(part, numbers.size);
    return numbers.get(part)!;
  };
  const made = new Map<string, Rest>();
  const counted = new Map<string, Node>();
  const put = (node: Node, next: Rest | null): Rest => {
    const key = `${numberOf(node)} ${numberOf(next)}`;
    if (!made.has(key)) made.set(key, { node, next });
    return made.get(key)!;
  };
  const left = (node: Node & { kind: 'times' }): Node => {
    const [min, max] = [Math.max(node.min - 1, 0), node.max - 1];
    const key = `${numberOf(node.part)} ${min} ${max}`;
    if (!counted.has(key)) counted.set(key, { ...node, min, max });
    return counted.get(key)!;
  };
  const split = new Map<string, Node>();
  const tail = (rest: string): Node => {
    if (!split.has(rest)) split.set(rest, { kind: 'chars', text: rest });
    return split.get(rest)!;
  };

  const settle = (starts: Iterable<Rest | null>): Set<Rest | null> => {
    const seen = new Set(starts);
    for (const state of seen) {
      if (!state) continue;
      const { node, next } = state;
      if (node.kind === 'name') seen.add(put(grammar.get(node.name)!, next));
      if (node.kind === 'any') for (const part of node.parts) seen.add(put(part, next));
      if (node.kind === 'all') {
        seen.add(node.parts.reduceRight<Rest | null>((after, part) => put(part, after), next));
      }
      if (node.kind === 'chars' && node.text === '') seen.add(next);
      if (node.kind === 'times') {
        if (node.min === 0) seen.add(next);
        if (node.max > 0) seen.add(put(node.part, put(left(node), next)));
      }
    }
    return seen;
  };

  let states = settle([put({ kind: 'name', name: 'root' }, null)]);
  for (const char of text) {
    const point = char.codePointAt(0)!;
    const after: (Rest | null)[] = [];
    for (const state of states) {
      if (!state) continue;
      const { node, next } = state;
      if (node.kind === 'class' && node.ranges.some(([a, b]) => a <= point && point <= b))
        after.push(next);
      if (node.kind === 'chars' && node.text.startsWith(char))
        after.push(put(tail(node.text.slice(char.length)), next));
    }
    states = settle(after);
    if (states.size === 0) return false;
  }
  return states.has(null);
}
