// One AbortSignal per request that fires when the client leaves before the answer is whole. Fastify's own
// request.signal can't be used: it fires as soon as the body of a POST was read.

import type { ServerResponse } from 'node:http';

export function clientGone(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) controller.abort(new Error('the client went away'));
  });
  return controller.signal;
}
