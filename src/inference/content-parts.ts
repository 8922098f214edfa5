// Finds message parts that are not text: images, audio, files. Every server has its own kinds, so they are neither
// parsed nor listed here. An engine that can't take them must check for them first.

import type { Task } from './engine.ts';
import type { ChatMessage } from './schema.ts';

export interface OtherPart {
  /** Path in the request, such as `messages[0].content[1]`. */
  readonly place: string;
  readonly type: string;
}

/** A text in place of a part. */
export const describePart = ({ type }: { readonly type: string }, reason: string) =>
  ({ type: 'text', text: `[A part of the type ${type} is missing here: ${reason}.]` }) as const;

/** The messages with texts in place of all other parts, for engines that take only text. */
export const describeOtherParts = (messages: readonly ChatMessage[]): ChatMessage[] =>
  messages.map((message) =>
    Array.isArray(message.content)
      ? {
          ...message,
          content: message.content.map((part) =>
            part.type === 'text' ? part : describePart(part, 'this model takes only text'),
          ),
        }
      : message,
  );

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

export const isText = ({ kind, body }: Task) =>
  kind !== 'chat' || findOtherPart(body.messages) === null;
