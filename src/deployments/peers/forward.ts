// Passes a request of another server on to a replica, and the response back, byte by byte: the other server has checked the
// request, and counts what it uses.

import { type IncomingMessage, request as send } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { FastifyReply } from 'fastify';

/** Where a replica is. */
export interface ReplicaAddress {
  readonly url: string;
  readonly key: string | null;
}

/** Resolves when the response has been passed on, or the other server has gone. Throws if the replica did not answer. */
export async function forward(
  { url, key }: ReplicaAddress,
  path: string,
  body: Readable,
  reply: FastifyReply,
): Promise<void> {
  const answer = await sendTo(`${url}${path}`, key, body, reply);
  reply.hijack();
  const type = answer.headers['content-type'];
  reply.raw.writeHead(answer.statusCode ?? 502, type === undefined ? {} : { 'content-type': type });
  // What was sent can't be taken back: the other server sees that the stream broke.
  await pipeline(answer, reply.raw).catch(() => {});
}

function sendTo(
  url: string,
  key: string | null,
  body: Readable,
  reply: FastifyReply,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const { 'content-length': length } = reply.request.headers;
  const outgoing = send(url, {
    method: 'POST',
    // A connection for each request: a tunnel is cheap, and replicas come and go.
    agent: false,
    headers: {
      'content-type': 'application/json',
      ...(length === undefined ? {} : { 'content-length': length }),
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
    },
  });
  outgoing.once('response', resolve).once('error', reject);
  reply.raw.once('close', () => outgoing.destroy());
  pipeline(body, outgoing).catch(reject);
  return promise;
}
