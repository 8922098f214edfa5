// Checks whether a given value satisfies a constraint. It is needed where a schema names values
// itself (`const`, `enum`) beside other keywords or in one branch of a `oneOf`.

import { accepts } from '#inference/engines/local/grammar/regex/automaton.ts';
import type { Spend } from '#inference/engines/local/grammar/work-budget.ts';
import { isMembers } from './document.ts';
import {
  type ArrayConstraint,
  type Conjunction,
  findMember,
  type NumberConstraint,
  type ObjectConstraint,
  type StringConstraint,
  type TypeConstraint,
} from './type-constraints.ts';

/** What is needed to look into the schemas of members. */
export interface MatchingContext {
  readonly expand: (conjunction: Conjunction) => readonly TypeConstraint[];
  readonly spend: Spend;
}

export function matches(
  value: unknown,
  constraint: TypeConstraint,
  matching: MatchingContext,
): boolean {
  const excluded = constraint.exclusions.some(({ constraints }) =>
    constraints.some((other) => matches(value, other, matching)),
  );
  return !excluded && fits(value, constraint, matching);
}

/** Equal for equal JSON values, whatever the order of their members. */
export function toCanonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toCanonicalText).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${toCanonicalText(member)}`)}}`;
}

function fits(value: unknown, constraint: TypeConstraint, matching: MatchingContext): boolean {
  matching.spend(typeof value === 'string' ? 20 + 10 * value.length : 20);
  switch (constraint.type) {
    case 'const': {
      const expected = toCanonicalText(constraint.value);
      matching.spend(10 * expected.length);
      return toCanonicalText(value) === expected;
    }
    case 'null':
      return value === null;
    case 'boolean':
      return typeof value === 'boolean';
    case 'number':
      return typeof value === 'number' && fitsNumber(value, constraint);
    case 'string':
      return typeof value === 'string' && fitsString(value, constraint);
    case 'array':
      return Array.isArray(value) && fitsArray(value, constraint, matching);
    case 'object':
      return isMembers(value) && fitsObject(value, constraint, matching);
  }
}

function fitsNumber(value: number, constraint: NumberConstraint): boolean {
  const { min, max, integer, aboveMin, belowMax } = constraint;
  if (integer && !Number.isInteger(value)) return false;
  return (aboveMin ? value > min : value >= min) && (belowMax ? value < max : value <= max);
}

function fitsString(value: string, constraint: StringConstraint): boolean {
  if (!within([...value].length, constraint)) return false;
  return !constraint.automaton || accepts(constraint.automaton, value);
}

function fitsArray(
  value: readonly unknown[],
  { prefix, items, min, max }: ArrayConstraint,
  matching: MatchingContext,
): boolean {
  if (!within(value.length, { min, max })) return false;
  return value.every((item, index) => fitsAll(item, prefix[index] ?? items, matching));
}

function fitsObject(
  value: Readonly<Record<string, unknown>>,
  constraint: ObjectConstraint,
  matching: MatchingContext,
): boolean {
  const members = Object.entries(value);
  if (!within(members.length, constraint)) return false;
  if (!constraint.required.every((name) => Object.hasOwn(value, name))) return false;
  return members.every(([name, member]) => {
    const conjunction = findMember(constraint, name);
    return conjunction !== undefined && fitsAll(member, conjunction, matching);
  });
}

function fitsAll(value: unknown, conjunction: Conjunction, matching: MatchingContext): boolean {
  if (conjunction.length === 0) return true;
  return matching.expand(conjunction).some((one) => matches(value, one, matching));
}

function within(count: number, { min, max }: { min: number; max: number }): boolean {
  return count >= min && count <= max;
}
