// Compiles a regular expression to the minimal automaton of its language by the textbook
// construction: an NFA with empty moves, then a DFA by subsets, then equal states merged. Every
// stage is bounded.

import type { Spend } from '#inference/engines/local/grammar/work-budget.ts';
import {
  type Automaton,
  complementOf,
  explore,
  intersectAutomata,
  type State,
} from './automaton.ts';
import type { CharRange } from './char-ranges.ts';
import { PatternError, parseRegex, type Regex } from './regex.ts';

interface Step {
  readonly free: number[];
  readonly moves: { ranges: readonly CharRange[]; to: number }[];
}

const maxSteps = 3000;
const maxRounds = 60;

export interface Patterns {
  /** The same source is compiled once. Throws PatternError. */
  compile(source: string): Automaton;
  both(a: Automaton, b: Automaton): Automaton;
}

export function createPatterns(spend: Spend): Patterns {
  const known = new Map<string, Automaton>();
  return {
    compile(source) {
      const automaton = known.get(source) ?? compilePattern(source, spend);
      known.set(source, automaton);
      return automaton;
    },
    both: (a, b) => minimise(intersectAutomata(a, b, spend), spend),
  };
}

/** The automaton of the strings in which `source` is found, or with `isWhole` of those that match it as a whole. */
export function compilePattern(source: string, spend: Spend, isWhole = false): Automaton {
  const { whole, looks } = parseRegex(source, isWhole);
  const main = compileRegex(whole, spend);
  if (looks.length === 0) return main;
  const joined = looks.reduce((automaton, look) => {
    const seen = compileRegex(look.whole, spend);
    return intersectAutomata(automaton, look.negative ? complementOf(seen, spend) : seen, spend);
  }, main);
  return minimise(joined, spend);
}

export function compileRegex(regex: Regex, spend: Spend): Automaton {
  const steps: Step[] = [];
  const end = addStep(steps);
  const start = build(regex, end, steps);
  return minimise(determinise(steps, start, end, spend), spend);
}

function addStep(steps: Step[]): number {
  if (steps.length === maxSteps) throw new PatternError('is too complex');
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
  if (Math.max(min, max === Infinity ? 0 : max) > maxSteps)
    throw new PatternError('is too complex');
  let at = next;
  if (max === Infinity) {
    const loop = addStep(steps);
    steps[loop]!.free.push(build(item, loop, steps), next);
    at = loop;
  }
  for (let count = max === Infinity ? min : max; count > 0; count--) {
    const inner = build(item, at, steps);
    // Nothing, however often: nested repetitions of it would take no steps and yet no end.
    if (inner === at) return at;
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
    const byTarget = new Map<string, { ranges: CharRange[]; to: number[] }>();
    for (const [index, first] of sorted.slice(0, -1).entries()) {
      const targets = moves.flatMap(({ ranges, to }) =>
        ranges.some(([from, last]) => from <= first && first <= last) ? [to] : [],
      );
      if (targets.length === 0) continue;
      const to = closure(targets);
      const range: CharRange = [first, sorted[index + 1]! - 1];
      const known = byTarget.get(String(to));
      if (known) known.ranges.push(range);
      else byTarget.set(String(to), { ranges: [range], to });
    }
    return { accepting: set.includes(end), edges: [...byTarget.values()] };
  });
}

/**
 * Splits the states into finer classes until the states of each class behave alike. A long chain would take one round
 * per state and has little to merge, so it is left as it is after `maxRounds`.
 */
function minimise(automaton: Automaton, spend: Spend): Automaton {
  const pieces = automaton.map(toPieces);
  let classes = automaton.map(({ accepting }): number => (accepting ? 1 : 0));
  for (let count = 0, round = 0; ; round++) {
    if (round === maxRounds) return automaton;
    const numbers = new Map<string, number>();
    spend(50 * automaton.length);
    classes = pieces.map((own, index) => {
      const signature = `${classes[index]} ${toSignature(own, classes)}`;
      const known = numbers.get(signature) ?? numbers.size;
      numbers.set(signature, known);
      return known;
    });
    if (numbers.size === count) break;
    count = numbers.size;
  }
  return explore(classes[0]!, spend, (group) => {
    spend(automaton.length);
    const { accepting, edges } = automaton[classes.indexOf(group)]!;
    const byTarget = new Map<number, CharRange[]>();
    for (const { ranges, to } of edges) {
      byTarget.set(classes[to]!, [...(byTarget.get(classes[to]!) ?? []), ...ranges]);
    }
    return { accepting, edges: [...byTarget].map(([to, ranges]) => ({ to, ranges })) };
  });
}

type Piece = readonly [first: number, last: number, to: number];

function toPieces({ edges }: State): readonly Piece[] {
  return edges
    .flatMap(({ ranges, to }) => ranges.map(([first, last]): Piece => [first, last, to]))
    .toSorted((a, b) => a[0] - b[0]);
}

/** The class that each character leads to, as text that is equal for equal behaviour. */
function toSignature(pieces: readonly Piece[], classes: readonly number[]): string {
  let signature = '';
  let end = -1;
  let target = -1;
  for (const [first, last, to] of pieces) {
    const next = classes[to]!;
    if (first !== end + 1 || next !== target) signature += `${end} ${first}:${next},`;
    end = last;
    target = next;
  }
  return `${signature}${end}`;
}
