// Refuses schemas whose alternatives llama.cpp can't follow in time. It reads alternatives side by
// side, each with its own stack. If two of them stay possible while a nested value is written, and
// that value has such alternatives too, the stacks multiply with the depth: fourteen brackets took
// 17 seconds.

import { orderMembers } from '#inference/engines/local/grammar/rules/object-members.ts';
import { chunk } from '#inference/engines/local/grammar/rules/rule-builder.ts';
import { areMembersApart } from '#inference/engines/local/grammar/schema/one-of.ts';
import type {
  ArrayConstraint,
  Conjunction,
  ObjectConstraint,
  TypeConstraint,
} from '#inference/engines/local/grammar/schema/type-constraints.ts';
import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';
import type { MatchingContext } from '#inference/engines/local/grammar/schema/value-matching.ts';

const maxStacks = 64;

export interface AmbiguityCheck {
  /** Records the alternatives of one rule. */
  add(name: string, path: string, constraints: readonly TypeConstraint[]): void;
  /** Throws UnsupportedSchema if alternatives could multiply beyond what llama.cpp can follow. */
  check(): void;
}

export function createAmbiguityCheck(
  matching: MatchingContext,
  ruleOf: (conjunction: Conjunction) => string,
): AmbiguityCheck {
  const paths = new Map<string, string>();
  /** Maps each rule to the rules that contain it, and to how many of their alternatives may be open meanwhile. */
  const around = new Map<string, Map<string, number>>();

  const note = (inner: string, outer: string, open: number) => {
    const users = around.get(inner) ?? new Map<string, number>();
    users.set(outer, Math.max(users.get(outer) ?? 1, open));
    around.set(inner, users);
  };

  return {
    add(name, path, constraints) {
      paths.set(name, path);
      const nested = constraints.filter(
        (constraint) => constraint.type === 'array' || constraint.type === 'object',
      );
      for (const constraint of nested) {
        const open = new Map(
          membersOf(constraint).map((member) => [ruleOf(member), alone(constraint)]),
        );
        for (const other of nested) {
          if (other === constraint) continue;
          for (const inner of new Set(sharedStart(constraint, other, matching).map(ruleOf))) {
            open.set(inner, (open.get(inner) ?? 1) + alone(other));
          }
        }
        for (const [inner, count] of open) note(inner, name, count);
      }
    },

    check() {
      const stacks = new Map<string, number>();
      const queue = [...around.keys()];
      for (let inner = queue.pop(); inner !== undefined; inner = queue.pop()) {
        for (const [outer, open] of around.get(inner) ?? []) {
          const count = open * (stacks.get(inner) ?? 1);
          if (count <= (stacks.get(outer) ?? 1)) continue;
          if (count > maxStacks) {
            const reason = 'has alternatives that only differ after a nested value';
            throw new UnsupportedSchema(paths.get(outer) ?? '', '', reason);
          }
          stacks.set(outer, count);
          queue.push(outer);
        }
      }
    },
  };
}

/** A long repetition is written in chunks, and only a chunk's end shows whether it is whole: two alternatives. */
function alone({ max }: ArrayConstraint | ObjectConstraint): number {
  return max !== Infinity && max > chunk ? 2 : 1;
}

function membersOf(constraint: ArrayConstraint | ObjectConstraint): Conjunction[] {
  if (constraint.type === 'array') return [...constraint.prefix, constraint.items];
  const extra = typeof constraint.additional === 'string' ? [] : [constraint.additional];
  return [...orderMembers(constraint).map(({ value }) => value), ...extra];
}

/** The members of `constraint` that may be written while `other` is still possible. */
function sharedStart(
  constraint: ArrayConstraint | ObjectConstraint,
  other: ArrayConstraint | ObjectConstraint,
  matching: MatchingContext,
): Conjunction[] {
  const shared: Conjunction[] = [];
  if (constraint.type === 'array' && other.type === 'array') {
    const length = Math.max(constraint.prefix.length, other.prefix.length) + 1;
    for (let index = 0; index < Math.min(length, constraint.max, other.max); index++) {
      const [own, theirs] = [
        constraint.prefix[index] ?? constraint.items,
        other.prefix[index] ?? other.items,
      ];
      shared.push(own);
      if (areMembersApart(own, theirs, matching, 0)) break;
    }
  }
  if (constraint.type === 'object' && other.type === 'object') {
    const theirs = orderMembers(other);
    for (const [index, own] of orderMembers(constraint).entries()) {
      const their = theirs[index];
      if (!their && (other.additional === 'none' || other.additional === 'unsaid')) break;
      // With optional members before it, any of the rest may come next.
      if (!own.required || !their?.required)
        return membersOf(constraint).slice(index).concat(shared);
      if (own.name !== their.name) break;
      shared.push(own.value);
      if (areMembersApart(own.value, their.value, matching, 0)) break;
    }
  }
  return shared;
}
