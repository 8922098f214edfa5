// A backend dies after some text: another goes on, and the client sees one stream. What can't be continued
// says so. Through HTTP, with upstreams on real sockets.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import OpenAI from 'openai';
import type { Behaviour } from '#inference/engines/scripted/behaviours.ts';
import { countWords } from '#inference/engines/scripted/script.ts';
import { type Gateway, gatewayModel, readEvents, startGateway } from '#test/support/gateway.ts';

const wholeText = 'The wheel türnt 水 and the 👩‍🔧 mill grinds.';
const usage = { stream: true, stream_options: { include_usage: true } };

/** One upstream that misbehaves in the middle, one that is well; whichever is asked first. */
async function breakOff(gateway: Gateway, behaviour: Behaviour, body: object = {}) {
  const [a, b] = gateway.upstreams;
  assert(a && b);
  for (const upstream of gateway.upstreams) upstream.behave(behaviour);
  // The second to be asked is well again by the time it is.
  const asked = () => gateway.upstreams.find(({ requests }) => requests.length > 0);
  const seen = gateway.chat({ ...usage, ...body });
  const watch = setInterval(() => {
    const first = asked();
    if (first === undefined) return;
    clearInterval(watch);
    (first === a ? b : a).behave('answers');
  }, 1);
  const response = await seen;
  return { response, first: () => (asked() === a ? a : b), second: () => (asked() === a ? b : a) };
}

describe('a stream whose backend dies', () => {
  for (const behaviour of ['dies-after-first-chunk', 'half-a-chunk', 'ends-early'] as const) {
    test(`continues on another backend as one stream: ${behaviour}`, async (test) => {
      const gateway = await startGateway(test, { upstreams: [{}, {}] });
      const { response, first, second } = await breakOff(gateway, behaviour);
      const seen = await readEvents(response);
      assert.deepEqual([seen.text, seen.finish], [wholeText, 'stop']);
      assert.equal(new Set(seen.events.map(({ id }) => id)).size, 1);
      const [sent] = second().requests;
      assert.equal(sent?.body.continue_final_message, true);
      assert.equal(sent?.body.add_generation_prompt, false);
      assert.equal(sent?.body.messages?.at(-1)?.role, 'assistant');
      assert.match(await gateway.metrics(), /millrace_continued_streams_total\{[^}]*\} 1/);
      // Undisturbed it is the same, event by event.
      first().behave('answers');
      const whole = await readEvents(await gateway.chat(usage));
      const choicesOf = ({ events }: typeof seen) => events.map(({ choices }) => choices);
      assert.deepEqual(choicesOf(seen), choicesOf(whole));
      assert.equal(seen.usage?.completion_tokens, whole.usage?.completion_tokens);
    });
  }

  test('silently, as vLLM’s does at shutdown, is moved once that backend is known to be gone', async (test) => {
    const gateway = await startGateway(test, {
      upstreams: [{}, {}],
      health: { probe_seconds: 1, eject_after: 1 },
      // Too long for this test: only the failed probe can end the silence.
      backend: { idle_ms: 600_000 },
    });
    const { response, first } = await breakOff(gateway, 'goes-silent');
    first().behave('html-error');
    const { text, finish } = await readEvents(response);
    assert.deepEqual([text, finish], [wholeText, 'stop']);
  });

  test('keeps to the requested number of tokens, and has a finish reason', async (test) => {
    const gateway = await startGateway(test, { upstreams: [{}, {}] });
    const { response, second } = await breakOff(gateway, 'half-a-chunk', { max_tokens: 4 });
    const { text, finish, usage } = await readEvents(response);
    assert.deepEqual([text, finish, usage?.completion_tokens], ['The wheel türnt 水', 'length', 4]);
    assert.equal(second().requests[0]?.body.max_tokens, 3);
  });

  test('keeps to it even if an event holds several tokens of a vocabulary that only backends know', async (test) => {
    const busy = { wordsPerEvent: 2 };
    const gateway = await startGateway(test, {
      upstreams: [busy, busy],
      model: { vocabulary: 'other' },
    });
    const { response, second } = await breakOff(gateway, 'half-a-chunk', { max_tokens: 5 });
    const { text, finish, usage } = await readEvents(response);
    assert.deepEqual([finish, usage?.completion_tokens], ['length', 5]);
    assert.equal(text, 'The wheel türnt 水 and');
    assert.equal(second().requests[0]?.body.max_tokens, 3);
    // Nor is what was generated a part of the prompt, however the other would cut it.
    assert.equal(usage?.prompt_tokens, countWords([{ role: 'user', content: 'Go' }]));
  });

  test('that had all its tokens but no finish reason is ended here', async (test) => {
    const gateway = await startGateway(test, { upstreams: [{}, {}] });
    const { response, second } = await breakOff(gateway, 'half-a-chunk', { max_tokens: 1 });
    const { text, finish } = await readEvents(response);
    assert.deepEqual([text, finish, second().requests.length], ['The', 'length', 0]);
  });

  test('that had all its tokens in one event is charged for each of them', async (test) => {
    const busy = { wordsPerEvent: 2 };
    const model = { vocabulary: 'other' as const };
    const gateway = await startGateway(test, { upstreams: [busy, busy], model });
    const { response } = await breakOff(gateway, 'half-a-chunk', { max_tokens: 2 });
    const { text, finish, usage } = await readEvents(response);
    assert.deepEqual([text, finish], ['The wheel', 'length']);
    const prompt_tokens = countWords([{ role: 'user', content: 'Go' }]);
    assert.deepEqual(usage, {
      prompt_tokens,
      completion_tokens: 2,
      total_tokens: prompt_tokens + 2,
      prompt_tokens_details: null,
    });
  });

  test('is continued without the official client noticing', async (test) => {
    const gateway = await startGateway(test, {
      upstreams: [{ eventDelayMs: 20 }, { eventDelayMs: 20 }],
    });
    const { server, upstreams } = gateway;
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key, maxRetries: 0 });
    const stream = client.chat.completions.stream({
      model: gatewayModel,
      messages: [{ role: 'user', content: 'Go' }],
    });
    let deltas = 0;
    stream.on('content', () => {
      // Its process is gone, with everything it had open.
      if (++deltas === 3) void upstreams.find(({ requests }) => requests.length > 0)?.close();
    });
    const { choices } = await stream.finalChatCompletion();
    assert.equal(choices[0]?.message.content, wholeText);
    assert.equal(choices[0]?.finish_reason, 'stop');
    assert(upstreams.every(({ requests }) => requests.length === 1));
  });

  test('of completions continues from prompt and text, and does not repeat an echo', async (test) => {
    const gateway = await startGateway(test, {
      upstreams: [{ behaviour: 'half-a-chunk' }, { behaviour: 'half-a-chunk' }],
    });
    const complete = gateway.server.fetch('/v1/completions', {
      json: { model: gatewayModel, prompt: 'Go: ', ...usage },
    });
    const [a, b] = gateway.upstreams;
    assert(a && b);
    const watch = setInterval(() => {
      const first = gateway.upstreams.find(({ requests }) => requests.length > 0);
      if (first === undefined) return;
      clearInterval(watch);
      (first === a ? b : a).behave('answers');
    }, 1);
    const { text, usage: used } = await readEvents(await complete);
    assert.equal(text, wholeText);
    assert.equal(used?.completion_tokens, 10);
    const prompts = gateway.upstreams.map(({ requests }) => requests[0]?.body.prompt);
    assert.deepEqual(prompts.sort(), ['Go: ', 'Go: The wheel']);
  });

  const never: [string, object, object?][] = [
    ['tool calls', { tools: [{ type: 'function', function: { name: 'f' } }] }],
    ['JSON', { response_format: { type: 'json_object' } }],
    ['logprobs', { logprobs: true }],
    ['a model for which it is switched off', {}, { continue_streams: false }],
  ];
  for (const [what, body, model] of never) {
    test(`is not continued for ${what}: the error event, then the end`, async (test) => {
      const gateway = await startGateway(test, {
        upstreams: [{ behaviour: 'half-a-chunk' }, { behaviour: 'half-a-chunk' }],
        ...(model && { model }),
      });
      const response = await gateway.chat({ stream: true, ...body });
      assert.match(response.headers.get('x-served-by') ?? '', /^[ab]$/);
      const { events, finish } = await readEvents(response);
      assert.equal(finish, 'error');
      const { error, choices } = events.at(-1) as { error: object; choices: object[] };
      assert.deepEqual(choices, [{ index: 0, delta: {}, finish_reason: 'error' }]);
      assert.deepEqual(
        { ...error, message: '' },
        { message: '', type: 'server_error', param: null, code: 'upstream_error' },
      );
      assert.equal(gateway.upstreams.flatMap(({ requests }) => requests).length, 1);
    });
  }

  test('is not continued by a server that can’t, nor if a stop string may span the seam', async (test) => {
    const unable = await startGateway(test, {
      upstreams: [{ behaviour: 'half-a-chunk' }, { behaviour: 'half-a-chunk' }],
      backend: { server: 'openai' },
    });
    assert.equal((await readEvents(await unable.chat({ stream: true }))).finish, 'error');
    const gateway = await startGateway(test, { upstreams: [{}, {}] });
    const { response } = await breakOff(gateway, 'half-a-chunk', { stop: ['The End'] });
    assert.equal((await readEvents(response)).finish, 'error');
    const other = await startGateway(test, { upstreams: [{}, {}] });
    const fine = await breakOff(other, 'half-a-chunk', { stop: ['An End'] });
    assert.equal((await readEvents(fine.response)).finish, 'stop');
  });

  test('ends with the error if the backends that continue it die as well', async (test) => {
    const gateway = await startGateway(test, {
      upstreams: [1, 2, 3, 4].map(() => ({ behaviour: 'half-a-chunk' as const })),
    });
    const { finish, text } = await readEvents(await gateway.chat({ stream: true }));
    assert.deepEqual([finish, text], ['error', 'The wheel türnt']);
    assert.equal(gateway.upstreams.flatMap(({ requests }) => requests).length, 3);
  });
});
