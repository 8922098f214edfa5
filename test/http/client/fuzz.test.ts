// The response parser with random responses: valid ones are read as Node's own client reads them, and mutated ones
// are refused or read without ambiguity. `fuzz.ts` runs the same properties for as long as you like.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { checkMutant, checkValid, deliveries } from '#test/support/http-client/check-response.ts';
import { createNodeClient, type NodeClient } from '#test/support/http-client/node-client.ts';
import { parsePackets } from '#test/support/http-client/parse-packets.ts';
import { cuts, mutants, responses } from '#test/support/http-responses.ts';
import { propertySeed } from '#test/support/property-seed.ts';

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
    await fc.assert(property, { seed: propertySeed, numRuns: 200 });
  });

  test('a mutated response is refused, cut off, or read as Node reads it', async () => {
    const ends: Record<string, number> = { complete: 0, 'cut off': 0, refused: 0 };
    const property = fc.asyncProperty(mutants, deliveries, async (text, delivery) => {
      const end = await checkMutant(node, text, delivery);
      ends[end] = (ends[end] ?? 0) + 1;
    });
    await fc.assert(property, { seed: propertySeed, numRuns: 400 });
    // Each outcome must be common, or the property says little about it.
    for (const [end, count] of Object.entries(ends)) assert(count > 20, `${count} ${end}`);
  });

  test('a no-break space at either end of a header value is kept', async () => {
    const text = 'HTTP/1.1 200 OK\r\nx-a: \t\xa0a\xa0b\xa0 \r\ncontent-length: 0\r\n\r\n';
    assert.equal(parsePackets([text], 4096).headers['x-a'], '\xa0a\xa0b\xa0');
    assert.equal((await node.read(text))?.headers['x-a'], '\xa0a\xa0b\xa0');
  });
});
