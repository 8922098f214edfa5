// What a schema allows, as a list of alternatives with one JSON type each. Every combinator is a
// union or an intersection of such lists. The schemas of a member are expanded only when the member
// is needed.

import {
  type Automaton,
  intersectAutomata,
} from '#inference/engines/local/grammar/regex/automaton.ts';
import type { Spend } from '#inference/engines/local/grammar/work-budget.ts';

export interface Located {
  readonly schema: unknown;
  readonly path: string;
}

/** Schemas that must all hold. An empty list allows any value. */
export type Conjunction = readonly Located[];

/** Generated values must match none of these: the other branches of a `oneOf`. */
export interface Exclusion {
  readonly constraints: readonly TypeConstraint[];
  readonly path: string;
}

interface Common {
  /** The schema allows the type only because it names none. Not generated if another alternative is explicit. */
  readonly implicit: boolean;
  readonly exclusions: readonly Exclusion[];
}

export interface ObjectConstraint extends Common {
  readonly type: 'object';
  readonly properties: ReadonlyMap<string, Conjunction>;
  readonly required: readonly string[];
  /**
   * Members beyond `properties`. `free`: the schema says nothing about members, so any are generated. `unsaid`: they
   * are valid, but a schema that lists its members wants only those. `none`: they are forbidden.
   */
  readonly additional: Conjunction | 'free' | 'unsaid' | 'none';
  readonly min: number;
  readonly max: number;
}

export interface ArrayConstraint extends Common {
  readonly type: 'array';
  readonly prefix: readonly Conjunction[];
  readonly items: Conjunction;
  readonly min: number;
  readonly max: number;
}

export interface StringConstraint extends Common {
  readonly type: 'string';
  /** The minimum length in code points. */
  readonly min: number;
  readonly max: number;
  readonly automaton: Automaton | null;
}

export interface NumberConstraint extends Common {
  readonly type: 'number';
  readonly integer: boolean;
  readonly min: number;
  readonly max: number;
  readonly aboveMin: boolean;
  readonly belowMax: boolean;
}

export interface ConstConstraint extends Common {
  readonly type: 'const';
  readonly value: unknown;
}

export interface SimpleConstraint extends Common {
  readonly type: 'null' | 'boolean';
}

export type TypeConstraint =
  | ObjectConstraint
  | ArrayConstraint
  | StringConstraint
  | NumberConstraint
  | ConstConstraint
  | SimpleConstraint;

const common = { implicit: false, exclusions: [] };

export const unconstrained: Readonly<
  Record<Exclude<TypeConstraint['type'], 'const'>, TypeConstraint>
> = {
  null: { type: 'null', ...common },
  boolean: { type: 'boolean', ...common },
  number: {
    type: 'number',
    ...common,
    integer: false,
    min: -Infinity,
    max: Infinity,
    aboveMin: false,
    belowMax: false,
  },
  string: { type: 'string', ...common, min: 0, max: Infinity, automaton: null },
  array: { type: 'array', ...common, prefix: [], items: [], min: 0, max: Infinity },
  object: {
    type: 'object',
    ...common,
    properties: new Map(),
    required: [],
    additional: 'free',
    min: 0,
    max: Infinity,
  },
};

/** What both allow; undefined if there is nothing. The caller must have checked that a constant matches. */
export function intersectConstraints(
  a: TypeConstraint,
  b: TypeConstraint,
  spend: Spend,
): TypeConstraint | undefined {
  spend(100);
  const shared = {
    implicit: a.implicit || b.implicit,
    exclusions: [...new Set([...a.exclusions, ...b.exclusions])],
  };
  if (a.type === 'const') return { ...a, ...shared };
  if (b.type === 'const') return { ...b, ...shared };
  if (a.type === 'object' && b.type === 'object') {
    spend(100 * (a.properties.size + b.properties.size + a.required.length + b.required.length));
    return { ...intersectObjects(a, b), ...shared };
  }
  if (a.type === 'array' && b.type === 'array') return { ...intersectArrays(a, b), ...shared };
  if (a.type === 'number' && b.type === 'number') return { ...intersectNumbers(a, b), ...shared };
  if (a.type === 'string' && b.type === 'string') {
    const automaton =
      a.automaton && b.automaton
        ? intersectAutomata(a.automaton, b.automaton, spend)
        : (a.automaton ?? b.automaton);
    return { ...a, ...bounds(a, b), automaton, ...shared };
  }
  return a.type === b.type ? { ...a, ...shared } : undefined;
}

function joinConjunctions(a: Conjunction, b: Conjunction): Conjunction {
  const known = new Set(a.map(({ schema }) => schema));
  return [...a, ...b.filter(({ schema }) => !known.has(schema))];
}

/** The schemas of one member of an object; undefined if the member is forbidden. */
export function findMember(constraint: ObjectConstraint, name: string): Conjunction | undefined {
  const declared = constraint.properties.get(name);
  if (declared) return declared.some(({ schema }) => schema === false) ? undefined : declared;
  if (constraint.additional === 'none') return undefined;
  return typeof constraint.additional === 'string' ? [] : constraint.additional;
}

export const forbidden: Conjunction = [{ schema: false, path: '' }];

function bounds(a: { min: number; max: number }, b: { min: number; max: number }) {
  return { min: Math.max(a.min, b.min), max: Math.min(a.max, b.max) };
}

function intersectObjects(a: ObjectConstraint, b: ObjectConstraint): ObjectConstraint {
  const properties = new Map<string, Conjunction>();
  for (const name of [...a.properties.keys(), ...b.properties.keys()]) {
    if (properties.has(name)) continue;
    const [first, second] = [findMember(a, name), findMember(b, name)];
    properties.set(name, first && second ? joinConjunctions(first, second) : forbidden);
  }
  return {
    ...a,
    ...bounds(a, b),
    properties,
    required: [...new Set([...a.required, ...b.required])],
    additional: intersectAdditional(a.additional, b.additional),
  };
}

function intersectAdditional(
  a: ObjectConstraint['additional'],
  b: ObjectConstraint['additional'],
): ObjectConstraint['additional'] {
  if (a === 'none' || b === 'none') return 'none';
  if (typeof a !== 'string' && typeof b !== 'string') return joinConjunctions(a, b);
  if (typeof a !== 'string') return a;
  if (typeof b !== 'string') return b;
  return a === 'free' && b === 'free' ? 'free' : 'unsaid';
}

function intersectArrays(a: ArrayConstraint, b: ArrayConstraint): ArrayConstraint {
  const length = Math.max(a.prefix.length, b.prefix.length);
  const prefix = Array.from({ length }, (_, index) =>
    joinConjunctions(a.prefix[index] ?? a.items, b.prefix[index] ?? b.items),
  );
  return { ...a, ...bounds(a, b), prefix, items: joinConjunctions(a.items, b.items) };
}

function intersectNumbers(a: NumberConstraint, b: NumberConstraint): NumberConstraint {
  const { min, max } = bounds(a, b);
  return {
    ...a,
    min,
    max,
    integer: a.integer || b.integer,
    aboveMin: (a.min === min && a.aboveMin) || (b.min === min && b.aboveMin),
    belowMax: (a.max === max && a.belowMax) || (b.max === max && b.belowMax),
  };
}
