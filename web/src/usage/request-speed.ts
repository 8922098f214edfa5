// How fast the tokens of a response arrived.

import type { UsageRequest } from '#accounts/usage/schema.ts';

/** Shorter responses give no meaningful speed: a few tokens may arrive in one packet. */
const minTokens = 8;
const minMs = 100;

/** Tokens per second after the first token; null if the response is too short to tell. */
export function toSpeed(request: UsageRequest): string | null {
  const { completion_tokens, first_token_ms, duration_ms } = request;
  const ms = duration_ms - (first_token_ms ?? 0);
  if (completion_tokens < minTokens || ms < minMs) return null;
  return ((completion_tokens - (first_token_ms === null ? 0 : 1)) / (ms / 1000)).toFixed(1);
}
