// Passes a request of another server on to a replica, and the response back, unchanged: the other server has checked the
// request, and counts what it uses.

import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { FastifyReply } from 'fastify';
import { request as send } from '#http/node-http.ts';
import { judgeResponse } from '#inference/engines/upstream/failures.ts';

/** Where a replica is. */
export interface ReplicaAddress {
  /** Without `/v1`. */
  readonly url: string;
  readonly key: string | null;
}

/** Silence of both the replica and the other server after which the request is given up. */
const idleMs = 600_000;
/** Headers of the replica's response that the other server reads. */
const passedHeaders = ['content-type', 'retry-after', 'retry-after-ms'];

/** The one endpoint that every engine has. */
const chatPath = '/v1/chat/completions';

/** What a response says of its replica. */
export type Outcome = ReturnType<typeof judgeResponse>;

/** Throws if the replica did not answer. */
export async function forward(
  { url, key }: ReplicaAddress,
  path: string,
  reply: FastifyReply,
): Promise<Outcome> {
  const answer = await sendTo(`${url}${path}`, key, reply);
  reply.hijack();
  const { statusCode: status = 502, headers } = answer;
  const passed = passedHeaders.flatMap((name) => (headers[name] ? [[name, headers[name]]] : []));
  reply.raw.writeHead(status, Object.fromEntries(passed));
  // What was sent can't be taken back: the other server sees that the stream broke.
  return pipeline(answer, reply.raw).then(
    () => judgeResponse(status, headers, path === chatPath),
    () => 'failed' as const,
  );
}

function sendTo(url: string, key: string | null, reply: FastifyReply): Promise<IncomingMessage> {
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
  // A server that vanished without closing its connection must not keep the replica busy.
  outgoing.setTimeout(idleMs, () => outgoing.destroy(new Error('The replica was silent.')));
  outgoing.once('response', resolve).once('error', reject);
  reply.raw.once('close', () => outgoing.destroy());
  pipeline(reply.request.body as Readable, outgoing).catch(reject);
  return promise;
}
