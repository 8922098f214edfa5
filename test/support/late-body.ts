// Requests whose bodies arrive after the server has accepted the caller.

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';

/** Sends the head of a request. What is returned sends the body, and resolves with the status. */
export async function beginPost(
  url: string,
  own: Record<string, string>,
  body: string,
): Promise<() => Promise<number | undefined>> {
  const headers = { 'content-type': 'application/json', ...own, 'content-length': body.length };
  const outgoing = request(url, {
    method: 'POST',
    headers: { ...headers, expect: '100-continue' },
  });
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>;
  outgoing.flushHeaders();
  await once(outgoing, 'continue');
  return async () => {
    outgoing.end(body);
    const [response] = await answered;
    response.resume();
    return response.statusCode;
  };
}
