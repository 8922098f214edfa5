// Finds message parts that are not text: images, audio, files. Every server has its own kinds, so they are neither
// parsed nor listed here. An engine that can't take them must check for them first.

import type { ChatMessage } from './schema.ts';

export interface OtherPart {
  /** Path in the request, such as `messages[0].content[1]`. */
  readonly place: string;
  readonly type: string;
}

/** Returns the first part that is not text; null if there is none. */
export function findOtherPart(messages: readonly ChatMessage[]): OtherPart | null {
  for (const [at, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    const index = content.findIndex(({ type }) => type !== 'text');
    const part = content[index];
    if (part !== undefined) return { place: `messages[${at}].content[${index}]`, type: part.type };
  }
  return null;
}
