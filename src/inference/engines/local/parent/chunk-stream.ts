// Buffers chunks between the child that sends them and the consumer that reads them. It holds at most what one request
// may generate.

import type { EngineChunk } from '#inference/wire/response.ts';

export interface ChunkStream extends AsyncIterable<EngineChunk> {
  push(chunk: EngineChunk): void;
  /** Ends the stream after the chunks pushed so far. */
  end(): void;
  /** Drops the chunks that were not read. Iteration throws the error once and then ends. */
  fail(error: unknown): void;
  /** Resolves when there is a chunk or the end. Throws the error given to `fail`. */
  first(): Promise<void>;
}

/** `onLeave` is called when the consumer stops reading before the end. */
export function createChunkStream(onLeave: () => void): ChunkStream {
  let chunks: EngineChunk[] = [];
  let state: 'open' | 'ended' | 'failed' = 'open';
  let failure: unknown = null;
  let wake = () => {};

  /** Resolves to true if there is a chunk, and to false at the end. */
  async function available(): Promise<boolean> {
    while (chunks.length === 0 && state === 'open')
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    if (state === 'failed') {
      state = 'ended';
      throw failure;
    }
    return chunks.length > 0;
  }

  return {
    push(chunk) {
      if (state !== 'open') return;
      chunks.push(chunk);
      wake();
    },
    end() {
      if (state === 'open') state = 'ended';
      wake();
    },
    fail(error) {
      if (state !== 'open') return;
      state = 'failed';
      failure = error;
      chunks = [];
      wake();
    },
    async first() {
      await available();
    },
    async *[Symbol.asyncIterator]() {
      try {
        while (await available()) {
          const batch = chunks;
          chunks = [];
          for (const chunk of batch) {
            if (state === 'failed') break;
            yield chunk;
          }
        }
      } finally {
        onLeave();
      }
    },
  };
}
