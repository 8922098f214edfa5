// Deterministic automata over code points. They combine a pattern, a format and a length, show whether two patterns can
// match the same string, and become grammar rules without backtracking.

import type { Spend } from '#inference/engines/local/grammar/work-budget.ts';
import type { CharRange } from './char-ranges.ts';
import { complement, intersectRanges } from './char-ranges.ts';
import { PatternError } from './regex.ts';

export interface Edge {
  readonly ranges: readonly CharRange[];
  readonly to: number;
}

export interface State {
  readonly accepting: boolean;
  readonly edges: readonly Edge[];
}

/** Starts in state 0. Every other state can lead to an accepted string. */
export type Automaton = readonly State[];

const maxStates = 3000;

export function accepts(automaton: Automaton, value: string): boolean {
  let state = 0;
  for (const char of value) {
    const codePoint = char.codePointAt(0)!;
    const edge = automaton[state]!.edges.find(({ ranges }) =>
      ranges.some(([first, last]) => first <= codePoint && codePoint <= last),
    );
    if (!edge) return false;
    state = edge.to;
  }
  return automaton[state]!.accepting;
}

export function isEmpty(automaton: Automaton): boolean {
  return !automaton[0]!.accepting && automaton[0]!.edges.length === 0;
}

export function intersectAutomata(a: Automaton, b: Automaton, spend: Spend): Automaton {
  return explore<readonly [number, number]>([0, 0], spend, ([i, j]) => ({
    accepting: a[i]!.accepting && b[j]!.accepting,
    edges: a[i]!.edges.flatMap((one) =>
      b[j]!.edges.map((other) => ({
        ranges: intersectRanges(one.ranges, other.ranges),
        to: [one.to, other.to] as const,
      })),
    ),
  }));
}

/** Accepts every string that the automaton does not accept. */
export function complementOf(automaton: Automaton, spend: Spend): Automaton {
  const sink = automaton.length;
  return explore(0, spend, (state) => {
    const { accepting, edges } = automaton[state] ?? { accepting: false, edges: [] };
    const rest = complement(edges.flatMap(({ ranges }) => ranges));
    return { accepting: !accepting, edges: [...edges, { ranges: rest, to: sink }] };
  });
}

/** The strings of the automaton that have `min` to `max` code points. */
export function limitLength(
  automaton: Automaton,
  min: number,
  max: number,
  spend: Spend,
): Automaton {
  const longest = longestString(automaton);
  if (min === 0 && longest <= max) return automaton;
  const counted = longest <= max ? min : max;
  return explore<readonly [number, number]>([0, 0], spend, ([state, count]) => ({
    accepting: automaton[state]!.accepting && count >= min,
    edges:
      longest > max && count === max
        ? []
        : automaton[state]!.edges.map(({ ranges, to }) => ({
            ranges,
            to: [to, Math.min(count + 1, counted)] as const,
          })),
  }));
}

/** Accepts every string except these. */
export function allBut(names: readonly string[]): Automaton {
  const free = 1;
  const nodes: { accepting: boolean; next: Map<number, number> }[] = [
    { accepting: true, next: new Map() },
    { accepting: true, next: new Map() },
  ];
  for (const name of names) {
    let node = nodes[0]!;
    for (const char of name) {
      const codePoint = char.codePointAt(0)!;
      if (!node.next.has(codePoint)) {
        node.next.set(codePoint, nodes.length);
        nodes.push({ accepting: true, next: new Map() });
      }
      node = nodes[node.next.get(codePoint)!]!;
    }
    node.accepting = false;
  }
  return nodes.map(({ accepting, next }) => ({
    accepting,
    edges: [
      ...[...next].map(([char, to]) => ({ ranges: [[char, char]] as CharRange[], to })),
      { ranges: complement([...next.keys()].map((char) => [char, char])), to: free },
    ],
  }));
}

/** Numbers the states found from `start`, and drops those from which nothing is ever accepted. */
export function explore<Key>(
  start: Key,
  spend: Spend,
  visit: (key: Key) => { accepting: boolean; edges: { ranges: readonly CharRange[]; to: Key }[] },
): Automaton {
  const keys = [start];
  const numbers = new Map([[String(start), 0]]);
  const found: State[] = [];
  for (let at = 0; at < keys.length; at++) {
    const { accepting, edges } = visit(keys[at]!);
    spend(30 + 30 * edges.length);
    const numbered = edges.flatMap(({ ranges, to }) => {
      if (ranges.length === 0) return [];
      const name = String(to);
      const known = numbers.get(name) ?? keys.length;
      if (known === keys.length) {
        if (known === maxStates) throw new PatternError('is too complex');
        numbers.set(name, known);
        keys.push(to);
      }
      return [{ ranges, to: known }];
    });
    found.push({ accepting, edges: numbered });
  }
  return trim(found);
}

function trim(states: readonly State[]): Automaton {
  const before = states.map((): number[] => []);
  for (const [from, { edges }] of states.entries())
    for (const { to } of edges) before[to]!.push(from);
  const queue = states.flatMap(({ accepting }, index) => (accepting ? [index] : []));
  const alive = new Set(queue);
  for (let state = queue.pop(); state !== undefined; state = queue.pop()) {
    for (const from of before[state]!) {
      if (alive.has(from)) continue;
      alive.add(from);
      queue.push(from);
    }
  }
  alive.add(0);
  const numbers = new Map([...alive].toSorted((a, b) => a - b).map((old, index) => [old, index]));
  return [...numbers.keys()].map((old) => ({
    accepting: states[old]!.accepting,
    edges: states[old]!.edges.flatMap(({ ranges, to }) =>
      alive.has(to) ? [{ ranges, to: numbers.get(to)! }] : [],
    ),
  }));
}

/** Length of the longest string; Infinity if there is a loop, that is, if a path is longer than there are states. */
function longestString(automaton: Automaton): number {
  let layer = new Set([0]);
  for (let length = 0; length <= automaton.length; length++) {
    layer = new Set([...layer].flatMap((state) => automaton[state]!.edges.map(({ to }) => to)));
    if (layer.size === 0) return length;
  }
  return Infinity;
}
