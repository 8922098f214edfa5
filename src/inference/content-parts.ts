// Parts of messages that are no text: pictures, sound, files. Every server has its own kinds of them, so
// they are neither read nor listed here; who can't take them must find them first.

import type { ChatMessage } from './schema.ts';

export interface OtherPart {
  /** Such as `messages[0].content[1]`. */
  readonly place: string;
  readonly type: string;
}

/** The first one, or null when all is text. */
export function findOtherPart(messages: readonly ChatMessage[]): OtherPart | null {
  for (const [at, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    const index = content.findIndex(({ type }) => type !== 'text');
    const part = content[index];
    if (part !== undefined) return { place: `messages[${at}].content[${index}]`, type: part.type };
  }
  return null;
}
