// Seals what a model thought, and summaries of conversations, for clients that keep them between requests. They are
// readable for the same account alone.

import type { Seal } from '#lib/secrets/seal.ts';

export interface Sealer {
  close(text: string): string;
  /** Null if it was not sealed here, or for another account. */
  open(sealed: string): string | null;
}

export function createSealer(seal: Seal, accountId: string): Sealer {
  const place = `responses of ${accountId}`;
  return {
    close: (text) => seal.close(text, place),
    open(sealed) {
      try {
        return seal.open(sealed, place);
      } catch {
        return null;
      }
    },
  };
}
