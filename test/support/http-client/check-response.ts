// What must hold of the response parser for any response, valid or mutated. The property test and its long form share it.

import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import fc from 'fast-check';
import { HttpClientError } from '#http/client/response-handler.ts';
import { ResponseParser } from '#http/client/response-parser.ts';
import { cutPackets, cuts, type GeneratedResponse } from '#test/support/http-responses.ts';
import type { NodeClient } from './node-client.ts';
import { parsePackets } from './parse-packets.ts';

/** More than any generated response has. */
const maxHeadBytes = 4096;
/** Tight for some mutants, so that the bounds are tried too. */
const headLimits = fc.constantFrom(maxHeadBytes, maxHeadBytes, maxHeadBytes, 100, 200);

export interface Delivery {
  /** Where the text is cut into packets. */
  readonly places: number[];
  readonly maxHeadBytes: number;
}
export const deliveries = fc.record({ places: cuts, maxHeadBytes: headLimits });

/** A valid response is read as it was generated and as Node reads it, wherever it is cut. */
export async function checkValid(node: NodeClient, response: GeneratedResponse, places: number[]) {
  const { status, headers, body, isReusable, keepAliveMs } = response;
  const read = parsePackets(cutPackets(response.text, places), maxHeadBytes);
  const expected = { status, headers, text: body, isComplete: true, isReusable, keepAliveMs };
  assert.deepEqual(read, expected);
  const { headers: sent, ...rest } = (await node.read(response.text)) ?? {};
  assert.deepEqual({ ...rest, headers: { ...sent } }, { status, body, headers });
}

/**
 * A mutant is refused with HttpClientError, cut off, or complete. It never has more body than it declares, its
 * outcome does not depend on how it is cut, and a complete one is read as Node reads it. Returns the outcome.
 */
export async function checkMutant(node: NodeClient, text: string, delivery: Delivery) {
  const outcome = readMutant(cutPackets(text, delivery.places), delivery.maxHeadBytes);
  const unsplit = readMutant([text].filter(Boolean), delivery.maxHeadBytes);
  assert.equal(outcome.end, unsplit.end, 'the outcome depends on the packets');
  if (outcome.end !== 'complete') return outcome.end;
  assert.deepEqual(outcome, unsplit);
  const { status, headers, body } = outcome;
  for (const parser of ['strict', 'lenient'] as const) {
    const fromNode = await node.read(text, parser);
    // Node also refuses harmless things, such as a chunk extension without a name.
    if (fromNode === null) continue;
    const read = { ...fromNode, headers: { ...fromNode.headers } };
    assert.deepEqual(read, { status, headers: { ...headers }, body }, `Node's ${parser} parser`);
  }
  return outcome.end;
}

interface Outcome {
  readonly status: number;
  readonly headers: Readonly<IncomingHttpHeaders>;
  readonly body: string;
  readonly end: 'complete' | 'cut off' | 'refused';
}

function readMutant(packets: string[], maxHeadBytes: number): Outcome {
  let status = 0;
  let headers: Readonly<IncomingHttpHeaders> = {};
  let body = '';
  const calls = { head: 0, body: 0, end: 0 };
  const bytes = packets.reduce((sum, packet) => sum + packet.length, 0);
  const parser = new ResponseParser(
    {
      onHead(...head) {
        assert.equal(++calls.head, 1);
        [status, headers] = head;
      },
      onBody(part) {
        // Each call consumes a byte, so a parser that does not advance fails here instead of running forever.
        assert(++calls.body <= bytes && calls.head === 1 && calls.end === 0 && part.length > 0);
        body += part.toString('latin1');
      },
      onEnd: () => assert.equal(++calls.end, 1),
    },
    maxHeadBytes,
  );
  let isRefused = false;
  try {
    for (const packet of packets) parser.read(Buffer.from(packet, 'latin1'));
    parser.close();
  } catch (error) {
    if (!(error instanceof HttpClientError)) throw error;
    isRefused = true;
  }
  checkDeclared(headers, body.length);
  assert.equal(calls.end, parser.isComplete ? 1 : 0);
  const end = isRefused ? 'refused' : parser.isComplete ? 'complete' : 'cut off';
  return { status, headers, body, end };
}

function checkDeclared(headers: Readonly<IncomingHttpHeaders>, bodyBytes: number): void {
  const length = headers['content-length'];
  if (length === undefined) return;
  assert.equal(headers['transfer-encoding'], undefined, 'accepted two kinds of framing');
  assert(bodyBytes <= Number(length), `${bodyBytes} bytes of a body of ${length}`);
}
