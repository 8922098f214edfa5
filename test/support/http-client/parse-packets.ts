// What the response parser reports of a response that arrives in given packets.

import type { IncomingHttpHeaders } from 'node:http';
import { ResponseParser } from '#http/client/response-parser.ts';

/** Parses packets of latin1 text until the connection closes. Throws HttpClientError. */
export function parsePackets(packets: Iterable<string>, maxHeadBytes: number) {
  let status = 0;
  let headers: Readonly<IncomingHttpHeaders> = {};
  let text = '';
  const parser = new ResponseParser(
    {
      onHead(...head) {
        [status, headers] = head;
      },
      onBody(bytes) {
        text += bytes.toString('latin1');
        // A parser that still needed these bytes would read this instead.
        bytes.fill('!');
      },
      onEnd: () => {},
    },
    maxHeadBytes,
  );
  // All packets use the same memory, as in a pool.
  const memory = Buffer.alloc(64 * 1024);
  for (const packet of packets) {
    const length = memory.write(packet, 'latin1');
    parser.read(memory.subarray(0, length));
    memory.fill('?', 0, length);
  }
  parser.close();
  const { isReusable = true, keepAliveMs = null } = parser.head ?? {};
  return { status, headers, text, isComplete: parser.isComplete, isReusable, keepAliveMs };
}
