// Generates a background response: through the same pipeline as any other, but without a client.

import { toGeneration } from '#inference/apis/responses/endpoint.ts';
import type { ResponsesParts } from '#inference/apis/responses/parts.ts';
import type { Serve } from '#inference/serving/serve.ts';
import type { Generate } from './background.ts';
import { countBytes } from './defer.ts';

export const createGenerate =
  (serve: Serve, responses: ResponsesParts): Generate =>
  async (run, delivery) => {
    const { caller, items, reservation } = run;
    const id = run.id.slice('resp_'.length);
    const request = { ...run.request, stream: true };
    const from = { id, accountId: caller.accountId, responses };
    const { task, format } = toGeneration(request, run, from);
    const served = {
      id,
      caller,
      begunMs: performance.now(),
      headers: {},
      bodyBytes: countBytes(request, items, task),
      delivery,
      reservation,
      fixedHeaders: [],
    };
    await serve(served, task, format);
  };
