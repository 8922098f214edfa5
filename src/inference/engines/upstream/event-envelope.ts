// The envelope that Millrace puts around the choices of an upstream's event: its own `id`, `created` and `model`,
// then the members that the server added.

import type { Envelope } from '#inference/engine.ts';
import { toChunkOpening } from '#inference/wire.ts';
import { toBytes } from '#lib/memory/byte-string.ts';

/** The start of every event of a stream, as a byte string. The rest follows with a comma. */
export const toOpening = (envelope: Envelope) => `data: ${toBytes(toChunkOpening(envelope))}`;

const ownMembers = new Set(['id', 'object', 'created', 'model', 'choices', 'usage']);

/** The members that the server added to the format. */
export function toAddedMembers(event: Record<string, unknown>): Record<string, unknown> {
  const added: Record<string, unknown> = {};
  for (const name in event) if (!ownMembers.has(name)) added[name] = event[name];
  return added;
}

/** What follows the opening in a parsed event, as a byte string. An undefined `usage` is left out. */
export function toEventRest(event: Record<string, unknown>, usage: unknown): string {
  const rest: Record<string, unknown> = { system_fingerprint: null, ...toAddedMembers(event) };
  rest.choices = event.choices;
  if (usage !== undefined) rest.usage = usage;
  return `,${toBytes(JSON.stringify(rest)).slice(1)}\n\n`;
}
