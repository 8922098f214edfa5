// From a regular expression to the smallest automaton of its language, by the textbook: steps with empty
// moves, then sets of steps, then equal states merged. Every stage is bounded.

import {
  type Automaton,
  complementOf,
  explore,
  intersectAutomata,
  type State,
} from './automaton.ts';
import type { Range } from './gbnf.ts';
import { PatternError, parseRegex, type Regex } from './regex.ts';
import type { Spend } from './rules.ts';

interface Step {
  readonly free: number[];
  readonly moves: { ranges: readonly Range[]; to: number }[];
}

const stepLimit = 3000;

export function compilePattern(source: string, spend: Spend): Automaton {
  const { whole, looks } = parseRegex(source);
  return looks.reduce(
    (automaton, look) => {
      const seen = compileRegex(look.whole, spend);
      const allowed = look.negative ? complementOf(seen, spend) : seen;
      return minimise(intersectAutomata(automaton, allowed, spend), spend);
    },
    compileRegex(whole, spend),
  );
}

function compileRegex(regex: Regex, spend: Spend): Automaton {
  const steps: Step[] = [];
  const end = addStep(steps);
  const start = build(regex, end, steps);
  return minimise(determinise(steps, start, end, spend), spend);
}

function addStep(steps: Step[]): number {
  if (steps.length === stepLimit) throw new PatternError('is too complex');
  return steps.push({ free: [], moves: [] }) - 1;
}

/** Adds the steps of `regex` so that they lead to `next`; returns where they begin. */
function build(regex: Regex, next: number, steps: Step[]): number {
  switch (regex.kind) {
    case 'set': {
      const step = addStep(steps);
      steps[step]!.moves.push({ ranges: regex.ranges, to: next });
      return step;
    }
    case 'sequence':
      return regex.items.reduceRight((after, item) => build(item, after, steps), next);
    case 'choice': {
      const step = addStep(steps);
      for (const option of regex.options) steps[step]!.free.push(build(option, next, steps));
      return step;
    }
    case 'repeat':
      return buildRepeat(regex, next, steps);
    default:
      throw new PatternError('has an anchor or a lookahead in its middle');
  }
}

function buildRepeat(
  { item, min, max }: Regex & { kind: 'repeat' },
  next: number,
  steps: Step[],
): number {
  if (Math.max(min, max === Infinity ? 0 : max) > stepLimit)
    throw new PatternError('is too complex');
  let at = next;
  if (max === Infinity) {
    const loop = addStep(steps);
    steps[loop]!.free.push(build(item, loop, steps), next);
    at = loop;
  }
  for (let count = max === Infinity ? min : max; count > 0; count--) {
    const inner = build(item, at, steps);
    if (count <= min) {
      at = inner;
      continue;
    }
    const optional = addStep(steps);
    steps[optional]!.free.push(inner, next);
    at = optional;
  }
  return at;
}

function determinise(steps: readonly Step[], start: number, end: number, spend: Spend): Automaton {
  const closure = (from: Iterable<number>): number[] => {
    const reached = new Set(from);
    for (const step of reached) for (const free of steps[step]!.free) reached.add(free);
    spend(10 * reached.size);
    return [...reached].toSorted((a, b) => a - b);
  };
  return explore(closure([start]), spend, (set) => {
    const moves = set.flatMap((step) => steps[step]!.moves);
    const cuts = new Set(
      moves.flatMap(({ ranges }) => ranges.flatMap(([first, last]) => [first, last + 1])),
    );
    const sorted = [...cuts].toSorted((a, b) => a - b);
    spend(moves.length * sorted.length);
    const byTarget = new Map<string, { ranges: Range[]; to: number[] }>();
    for (const [index, first] of sorted.slice(0, -1).entries()) {
      const targets = moves.flatMap(({ ranges, to }) =>
        ranges.some(([from, last]) => from <= first && first <= last) ? [to] : [],
      );
      if (targets.length === 0) continue;
      const to = closure(targets);
      const range: Range = [first, sorted[index + 1]! - 1];
      const known = byTarget.get(String(to));
      if (known) known.ranges.push(range);
      else byTarget.set(String(to), { ranges: [range], to });
    }
    return { accepting: set.includes(end), edges: [...byTarget.values()] };
  });
}

/** Splits the states into ever finer classes until states of one class can't be told apart. */
function minimise(automaton: Automaton, spend: Spend): Automaton {
  let classes = automaton.map(({ accepting }): number => (accepting ? 1 : 0));
  for (let count = 0; ; ) {
    const numbers = new Map<string, number>();
    spend(50 * automaton.length);
    const finer = automaton.map((state, index) => {
      const signature = `${classes[index]} ${signatureOf(state, classes)}`;
      const known = numbers.get(signature) ?? numbers.size;
      numbers.set(signature, known);
      return known;
    });
    classes = finer;
    if (numbers.size === count) break;
    count = numbers.size;
  }
  return explore(classes[0]!, spend, (group) => {
    spend(automaton.length);
    const { accepting, edges } = automaton[classes.indexOf(group)]!;
    const byTarget = new Map<number, Range[]>();
    for (const { ranges, to } of edges) {
      byTarget.set(classes[to]!, [...(byTarget.get(classes[to]!) ?? []), ...ranges]);
    }
    return { accepting, edges: [...byTarget].map(([to, ranges]) => ({ to, ranges })) };
  });
}

/** Which class each character leads to, written so that equal behaviour gives equal text. */
function signatureOf(state: State, classes: readonly number[]): string {
  const pieces = state.edges.flatMap(({ ranges, to }) =>
    ranges.map(([first, last]) => ({ first, last, to: classes[to]! })),
  );
  pieces.sort((a, b) => a.first - b.first);
  const merged: typeof pieces = [];
  for (const piece of pieces) {
    const before = merged.at(-1);
    if (before && before.to === piece.to && before.last + 1 === piece.first)
      before.last = piece.last;
    else merged.push({ ...piece });
  }
  return merged.map(({ first, last, to }) => `${first}-${last}:${to}`).join(' ');
}
