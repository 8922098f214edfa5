// Shortens a conversation that doesn't fit the window of its model, for requests that ask for that instead of an error.

import type { ChatMessage } from '#inference/schema.ts';

/**
 * Keeps the leading instructions and about this share of the rest, the newest messages. An output stays with its call.
 * Returns null if there is nothing left to drop.
 */
export function dropOldest(messages: readonly ChatMessage[], share: number): ChatMessage[] | null {
  const isInstruction = ({ role }: ChatMessage) => role === 'system' || role === 'developer';
  const begun = messages.findIndex((message) => !isInstruction(message));
  const start = begun < 0 ? messages.length : begun;
  const lengths = messages.map((message) => JSON.stringify(message).length);
  const total = lengths.slice(start).reduce((sum, length) => sum + length, 0);
  let dropped = 0;
  let at = start;
  while (at < messages.length && (at === start || dropped < total * (1 - share))) {
    dropped += lengths[at] as number;
    at++;
    // An output whose call is gone would be refused.
    while (messages[at]?.role === 'tool') {
      dropped += lengths[at] as number;
      at++;
    }
  }
  return at < messages.length ? [...messages.slice(0, start), ...messages.slice(at)] : null;
}
