// Implements `oneOf`: a branch is generated only where no value written for it can satisfy another
// branch. If that can't be shown, the schema is refused, because a grammar can't express "not".

import { intersectAutomata, isEmpty } from '#inference/engines/local/grammar/regex/automaton.ts';
import {
  type Conjunction,
  findMember,
  forbidden,
  type NumberConstraint,
  type ObjectConstraint,
  type StringConstraint,
  type TypeConstraint,
} from './type-constraints.ts';
import { UnsupportedSchema } from './unsupported-schema.ts';
import { type MatchingContext, matches } from './value-matching.ts';

const maxProofDepth = 6;

/**
 * Returns the constraint without the optional members by which it could match another branch; undefined if it always
 * matches one.
 */
export function applyExclusions(
  constraint: TypeConstraint,
  matching: MatchingContext,
): TypeConstraint | undefined {
  if (constraint.type === 'const')
    return matches(constraint.value, constraint, matching) ? constraint : undefined;
  let narrowed: TypeConstraint = constraint;
  for (const { constraints, path } of constraint.exclusions) {
    for (const other of constraints) {
      if (isApart(narrowed, other, matching, 0)) continue;
      const without = withoutDistinguishingMember(narrowed, other);
      if (!without) {
        throw new UnsupportedSchema(path, 'oneOf', 'has branches that may hold at once');
      }
      narrowed = without;
    }
  }
  return narrowed;
}

/** A value that lacks a member which `other` requires can't satisfy `other`. */
function withoutDistinguishingMember(
  constraint: TypeConstraint,
  other: TypeConstraint,
): TypeConstraint | undefined {
  if (constraint.type !== 'object' || other.type !== 'object') return undefined;
  const name = other.required.find((required) => !constraint.required.includes(required));
  if (name === undefined) return undefined;
  return { ...constraint, properties: new Map([...constraint.properties, [name, forbidden]]) };
}

/** True if no value generated for `constraint` satisfies `other`. False if that is not known. */
function isApart(
  constraint: TypeConstraint,
  other: TypeConstraint,
  matching: MatchingContext,
  depth: number,
): boolean {
  matching.spend(50);
  if (constraint.type === 'const') return !matches(constraint.value, other, matching);
  if (other.type === 'const') {
    // The constraint's own exclusions are being proven, so the proof can't rely on them.
    return !matches(other.value, { ...constraint, exclusions: [] }, matching);
  }
  if (constraint.type === 'object' && other.type === 'object') {
    return areObjectsApart(constraint, other, matching, depth);
  }
  if (constraint.type === 'number' && other.type === 'number')
    return areNumbersApart(constraint, other);
  if (constraint.type === 'string' && other.type === 'string') {
    return areStringsApart(constraint, other, matching);
  }
  if (constraint.type === 'array' && other.type === 'array') {
    if (constraint.min > other.max || other.min > constraint.max) return true;
    const longest = Math.min(
      constraint.min,
      Math.max(constraint.prefix.length, other.prefix.length) + 1,
    );
    return Array.from({ length: longest }, (_, index) => index).some((index) =>
      areMembersApart(
        constraint.prefix[index] ?? constraint.items,
        other.prefix[index] ?? other.items,
        matching,
        depth,
      ),
    );
  }
  return constraint.type !== other.type;
}

/** True if no value of a member satisfies both conjunctions. False if that is not known. */
export function areMembersApart(
  a: Conjunction,
  b: Conjunction,
  matching: MatchingContext,
  depth: number,
): boolean {
  if (depth === maxProofDepth || a.length === 0 || b.length === 0) return false;
  const others = matching.expand(b);
  return matching
    .expand(a)
    .every((one) => others.every((other) => isApart(one, other, matching, depth + 1)));
}

function areObjectsApart(
  constraint: ObjectConstraint,
  other: ObjectConstraint,
  matching: MatchingContext,
  depth: number,
): boolean {
  if (other.required.some((name) => !mayGenerate(constraint, name))) return true;
  return constraint.required.some((name) => {
    const [own, theirs] = [findMember(constraint, name), findMember(other, name)];
    if (!own || !theirs) return true;
    return areMembersApart(own, theirs, matching, depth);
  });
}

function mayGenerate(constraint: ObjectConstraint, name: string): boolean {
  if (constraint.properties.has(name) || constraint.required.includes(name)) {
    return findMember(constraint, name) !== undefined;
  }
  return constraint.additional !== 'unsaid' && constraint.additional !== 'none';
}

function areNumbersApart(a: NumberConstraint, b: NumberConstraint): boolean {
  const below = (one: NumberConstraint, two: NumberConstraint) =>
    one.max < two.min || (one.max === two.min && (one.belowMax || two.aboveMin));
  return below(a, b) || below(b, a);
}

function areStringsApart(
  a: StringConstraint,
  b: StringConstraint,
  matching: MatchingContext,
): boolean {
  if (a.min > b.max || b.min > a.max) return true;
  return (
    !!a.automaton &&
    !!b.automaton &&
    isEmpty(intersectAutomata(a.automaton, b.automaton, matching.spend))
  );
}
