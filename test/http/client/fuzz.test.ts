// The response parser with random responses: valid ones are read as Node's own client reads them, and mutated ones
// are refused or read without ambiguity. `fuzz.ts` runs the same properties for as long as you like.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { checkMutant, checkValid, deliveries } from '#test/support/http-client/check-response.ts';
import { createNodeClient, type NodeClient } from '#test/support/http-client/node-client.ts';
import { parsePackets } from '#test/support/http-client/parse-packets.ts';
import { cuts, mutants, responses } from '#test/support/http-responses.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';

describe('the response parser with random responses', () => {
  let node: NodeClient;
  before(async () => {
    node = await createNodeClient();
  });
  after(() => node[Symbol.asyncDispose]());

  test('a valid response is read as Node reads it, wherever it is cut', async () => {
    const property = fc.asyncProperty(responses, cuts, (response, places) =>
      checkValid(node, response, places),
    );
    await fc.assert(property, { seed: propertySeed, numRuns: propertyRuns(200) });
  });

  test('a mutated response is refused, cut off, or read as Node reads it', async () => {
    const ends: Record<string, number> = { complete: 0, 'cut off': 0, refused: 0 };
    const property = fc.asyncProperty(mutants, deliveries, async (text, delivery) => {
      const end = await checkMutant(node, text, delivery);
      ends[end] = (ends[end] ?? 0) + 1;
    });
    await fc.assert(property, { seed: propertySeed, numRuns: propertyRuns(400) });
    // Each outcome must be common, or the property says little about it.
    for (const [end, count] of Object.entries(ends))
      assert(count > propertyRuns(20), `${count} ${end}`);
  });

  test('a no-break space at either end of a header value is kept', async () => {
    const text = 'HTTP/1.1 200 OK\r\nx-a: \t\xa0a\xa0b\xa0 \r\ncontent-length: 0\r\n\r\n';
    assert.equal(parsePackets([text], 4096).headers['x-a'], '\xa0a\xa0b\xa0');
    assert.equal((await node.read(text))?.headers['x-a'], '\xa0a\xa0b\xa0');
  });

  // fuzz.ts found what names a seed. The bound on trailers and the chunk extensions were found by reading the parser.

  test('ambiguous framing is refused even if the status allows no body (seed 1)', () => {
    const ambiguous = [
      'Transfer-Encoding: chunked\r\nContent-Length: 0\r\n',
      'content-length:0\r\nContent-Length: 0\r\n',
    ];
    for (const status of [100, 204, 304])
      for (const headers of ambiguous)
        assert.throws(
          () => parsePackets([`HTTP/1.1 ${status} OK\r\n${headers}\r\n`], 4096),
          { code: 'not_http' },
          `${status} ${headers}`,
        );
  });

  test('the bounds on headers and trailers do not depend on the packets (seed 1)', () => {
    const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
    const trailers = `x-a: ${'a'.repeat(head.length - 9)}\r\n\r\n`;
    const text = `${head}0\r\n${trailers}`;
    for (const packets of [[text], text]) {
      assert.equal(parsePackets(packets, head.length).isComplete, true);
      assert.throws(() => parsePackets(packets, head.length - 1), { code: 'head_too_large' });
    }
    const longer = text.replace('x-a: ', 'x-a: a');
    for (const packets of [[longer], longer])
      assert.throws(() => parsePackets(packets, head.length), { code: 'head_too_large' });
  });

  test('control characters in chunk extensions are refused', () => {
    const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
    for (const character of ['\n', '\r', '\0', '\x0b', '\x7f']) {
      const text = `${head}5;a${character}b\r\nhello\r\n0\r\n\r\n`;
      for (const packets of [[text], text])
        assert.throws(() => parsePackets(packets, 4096), { code: 'not_http' });
    }
    const tabbed = `${head}5;a\tb\r\nhello\r\n0\r\n\r\n`;
    assert.equal(parsePackets([tabbed], 4096).text, 'hello');
  });
});
