// llama.cpp reads alternatives side by side, each with its own stack. Where two of them stay possible while
// a nested value is written, and that value has such alternatives too, the stacks multiply with the depth:
// fourteen brackets kept it busy for 17 seconds. Schemas that allow this are refused.

import { areMembersApart } from '#inference/engines/local/grammar/schema/one-of.ts';
import type { Knowledge } from '#inference/engines/local/grammar/schema/value-matching.ts';
import { orderMembers } from '#inference/engines/local/grammar/rules/object-members.ts';
import { chunk } from '#inference/engines/local/grammar/rules/rule-builder.ts';
import type { ArrayShape, Conjunction, ObjectShape, Shape } from '#inference/engines/local/grammar/schema/type-constraints.ts';
import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';

const stackLimit = 64;

export interface Races {
  /** Notes the alternatives of one rule. */
  add(name: string, path: string, shapes: readonly Shape[]): void;
  /** Throws UnsupportedSchema when alternatives could multiply beyond what llama.cpp can follow. */
  check(): void;
}

export function createRaces(known: Knowledge, ruleOf: (conjunction: Conjunction) => string): Races {
  const paths = new Map<string, string>();
  /** For each rule, the rules around it, and how many of their alternatives may be open meanwhile. */
  const around = new Map<string, Map<string, number>>();

  const note = (inner: string, outer: string, open: number) => {
    const users = around.get(inner) ?? new Map<string, number>();
    users.set(outer, Math.max(users.get(outer) ?? 1, open));
    around.set(inner, users);
  };

  return {
    add(name, path, shapes) {
      paths.set(name, path);
      const nested = shapes.filter((shape) => shape.type === 'array' || shape.type === 'object');
      for (const shape of nested) {
        const open = new Map(membersOf(shape).map((member) => [ruleOf(member), alone(shape)]));
        for (const other of nested) {
          if (other === shape) continue;
          for (const inner of new Set(sharedStart(shape, other, known).map(ruleOf))) {
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
          if (count > stackLimit) {
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

/** A long repetition is written in chunks, and whether a chunk will be whole shows only at its end. */
function alone({ max }: ArrayShape | ObjectShape): number {
  return max !== Infinity && max > chunk ? 2 : 1;
}

function membersOf(shape: ArrayShape | ObjectShape): Conjunction[] {
  if (shape.type === 'array') return [...shape.prefix, shape.items];
  const extra = typeof shape.additional === 'string' ? [] : [shape.additional];
  return [...orderMembers(shape).map(({ value }) => value), ...extra];
}

/** The members of `shape` that may be written while `other` is still possible. */
function sharedStart(
  shape: ArrayShape | ObjectShape,
  other: ArrayShape | ObjectShape,
  known: Knowledge,
): Conjunction[] {
  const shared: Conjunction[] = [];
  if (shape.type === 'array' && other.type === 'array') {
    const length = Math.max(shape.prefix.length, other.prefix.length) + 1;
    for (let index = 0; index < Math.min(length, shape.max, other.max); index++) {
      const [own, theirs] = [
        shape.prefix[index] ?? shape.items,
        other.prefix[index] ?? other.items,
      ];
      shared.push(own);
      if (areMembersApart(own, theirs, known, 0)) break;
    }
  }
  if (shape.type === 'object' && other.type === 'object') {
    const theirs = orderMembers(other);
    for (const [index, own] of orderMembers(shape).entries()) {
      const their = theirs[index];
      if (!their && (other.additional === 'none' || other.additional === 'unsaid')) break;
      // With optional members before it, any of the rest may come next.
      if (!own.required || !their?.required) return membersOf(shape).slice(index).concat(shared);
      if (own.name !== their.name) break;
      shared.push(own.value);
      if (areMembersApart(own.value, their.value, known, 0)) break;
    }
  }
  return shared;
}
