// Requests of the Messages API as the chats that engines get.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMessagesFormat } from '#inference/apis/messages/format.ts';
import { type Message, MessagesRequest } from '#inference/apis/messages/schema.ts';
import { toTask } from '#inference/apis/messages/translate.ts';
import type { ChatChoice } from '#inference/wire/response.ts';
import { createValidator } from '#lib/schema/validator.ts';

const base = { model: 'agent', max_tokens: 32_000 };
const isValid = createValidator(MessagesRequest);

/** Takes any object: clients send what no type knows. */
function translate(request: object) {
  const body = { ...base, messages: [{ role: 'user', content: 'Hi' }], ...request };
  assert(isValid(body), JSON.stringify(isValid.errors));
  return toTask(body as MessagesRequest);
}

const messagesOf = (messages: object[], more: object = {}) =>
  translate({ messages, ...more }).body.messages;

test('the system prompt comes first, without the header that changes with every request', () => {
  const system = [
    { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1; cch=81f3;' },
    { type: 'text', text: 'You are an agent.', cache_control: { type: 'ephemeral' } },
    { type: 'text', text: 'Be brief.' },
  ];
  const user = { role: 'user', content: 'Hi' };
  assert.deepEqual(messagesOf([user], { system }), [
    { role: 'system', content: 'You are an agent.\nBe brief.' },
    user,
  ]);
  assert.deepEqual(messagesOf([user], { system: 'Be brief.' })[0], {
    role: 'system',
    content: 'Be brief.',
  });
  assert.deepEqual(messagesOf([user], { system: system.slice(0, 1) }), [user]);
});

test('a system message stays in its place', () => {
  const roles = messagesOf([
    { role: 'user', content: 'Hi' },
    { role: 'system', content: [{ type: 'text', text: 'The date is known.' }] },
    { role: 'user', content: 'Go on.' },
  ]).map(({ role }) => role);
  assert.deepEqual(roles, ['user', 'system', 'user']);
});

test('calls and their results become tool calls and tool messages', () => {
  const messages = messagesOf([
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Look.', signature: 'of another server' },
        { type: 'redacted_thinking', data: 'x' },
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } },
        { type: 'tool_use', id: 'toolu_2', name: 'Read', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: 'a.txt', is_error: false },
        {
          type: 'tool_result',
          tool_use_id: 'toolu_2',
          is_error: true,
          content: [
            { type: 'text', text: 'no such file' },
            { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
            { type: 'tool_reference', tool_name: 'Grep' },
          ],
        },
        { type: 'text', text: 'And now?' },
      ],
    },
  ]);
  const call = (id: string, name: string, args: string) => ({
    id,
    type: 'function',
    function: { name, arguments: args },
  });
  assert.deepEqual(messages, [
    {
      role: 'assistant',
      content: 'I look.',
      reasoning_content: 'Look.',
      tool_calls: [call('toolu_1', 'Bash', '{"command":"ls"}'), call('toolu_2', 'Read', '{}')],
    },
    { role: 'tool', tool_call_id: 'toolu_1', content: 'a.txt' },
    {
      role: 'tool',
      tool_call_id: 'toolu_2',
      content: 'Error: no such file\nThe tool Grep is available.',
    },
    {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
        { type: 'text', text: 'And now?' },
      ],
    },
  ]);
});

test('images and documents become the parts that servers take', () => {
  const [message] = messagesOf([
    {
      role: 'user',
      content: [
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBO' } },
        { type: 'image', source: { type: 'file', file_id: 'file_1' } },
        { type: 'document', title: 'Notes', source: { type: 'text', data: 'Line' } },
        {
          type: 'document',
          source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' },
        },
        {
          type: 'search_result',
          title: 'Found',
          source: 'https://example.com',
          content: [{ type: 'text', text: 'It is here.' }],
        },
      ],
    },
  ]);
  assert.deepEqual(message?.content, [
    { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } },
    { type: 'text', text: '[An image that this server does not have.]' },
    { type: 'text', text: 'Notes' },
    { type: 'text', text: 'Line' },
    {
      type: 'file',
      file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,JVBE' },
    },
    { type: 'text', text: 'Found\nhttps://example.com\nIt is here.' },
  ]);
});

test('what only other servers know is left out', () => {
  const { body } = translate({
    thinking: { type: 'adaptive' },
    context_management: { edits: [{ type: 'clear_thinking_20251015' }] },
    output_config: { effort: 'high' },
    mcp_servers: [],
    messages: [
      { role: 'user', content: [{ type: 'tool_addition', tools: ['x'] }] },
      { role: 'user', content: [{ type: 'text', text: 'Hi' }, { type: 'from_the_future' }] },
      {
        role: 'assistant',
        content: [
          { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
          { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
          { type: 'text', text: 'Found.' },
        ],
      },
      { role: 'user', content: 'Go on.' },
    ],
    tools: [
      { type: 'web_search_20250305', name: 'web_search', max_uses: 5 },
      { name: 'Deferred', defer_loading: true },
    ],
    tool_choice: { type: 'auto' },
  });
  assert.deepEqual(body, {
    model: 'agent',
    max_tokens: 32_000,
    messages: [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Found.' },
      { role: 'user', content: 'Go on.' },
    ],
  });
});

test('a request of which nothing can be read is refused', () => {
  const messages = [{ role: 'user', content: [{ type: 'from_the_future' }] }];
  assert.throws(() => translate({ messages }), { status: 400, param: 'messages' });
});

test('tools keep their schema, and each choice has its counterpart', () => {
  const input_schema = { type: 'object', properties: { command: { type: 'string' } } };
  const tools = [{ name: 'Bash', description: 'Runs.', input_schema, cache_control: null }];
  const choose = (tool_choice: object) => translate({ tools, tool_choice }).body;
  assert.deepEqual(translate({ tools }).body.tools, [
    {
      type: 'function',
      function: { name: 'Bash', description: 'Runs.', parameters: input_schema },
    },
  ]);
  assert.equal(choose({ type: 'auto' }).tool_choice, 'auto');
  assert.equal(choose({ type: 'none' }).tool_choice, 'none');
  assert.equal(choose({ type: 'any' }).tool_choice, 'required');
  assert.deepEqual(choose({ type: 'tool', name: 'Bash' }).tool_choice, {
    type: 'function',
    function: { name: 'Bash' },
  });
  assert.equal(choose({ type: 'auto' }).parallel_tool_calls, undefined);
  const single = choose({ type: 'any', disable_parallel_tool_use: true });
  assert.equal(single.parallel_tool_calls, false);
});

test('sampling and the form of the output are passed on', () => {
  const schema = { type: 'object' };
  const { body, fitsMaximum } = translate({
    stream: true,
    stop_sequences: ['END'],
    temperature: 0.5,
    top_p: 0.9,
    top_k: 40,
    output_config: { format: { type: 'json_schema', schema } },
  });
  const { stream, stop, temperature, top_p, top_k, response_format } = body;
  assert.deepEqual([stream, stop, temperature, top_p, top_k], [true, ['END'], 0.5, 0.9, 40]);
  assert.deepEqual(response_format, {
    type: 'json_schema',
    json_schema: { name: 'output', schema },
  });
  assert.equal(fitsMaximum, true);
});

test('a last message of the assistant is continued', () => {
  const prefill = [
    { role: 'user', content: 'Name a color.' },
    { role: 'assistant', content: 'The color is' },
  ];
  assert.equal(translate({ messages: prefill }).body.continue_final_message, true);
  assert.equal(translate({}).body.continue_final_message, undefined);
});

test('the conversation is named by the metadata', () => {
  const user_id = JSON.stringify({ device_id: 'd', session_id: 'b2c1' });
  assert.equal(translate({ metadata: { user_id } }).conversation, 'b2c1');
  const old = { user_id: 'user_81f_account__session_0e-5' };
  assert.equal(translate({ metadata: old }).conversation, '0e-5');
  assert.equal(translate({ metadata: { user_id: 'ada' } }).conversation, undefined);
});

test('a long user id is not searched for a session', () => {
  // The search would take hours.
  const user_id = `${'_session_'.repeat(800_000)}!`;
  assert.equal(translate({ metadata: { user_id } }).conversation, undefined);
});

test('a whole response has the blocks that a stream would have', () => {
  const message: ChatChoice['message'] = {
    role: 'assistant',
    content: 'I look.',
    reasoning_content: 'Look.',
    tool_calls: [
      { id: 'call_1', type: 'function', function: { name: 'Bash', arguments: '{"a":1}' } },
      { id: '', type: 'function', function: { name: 'Read', arguments: '' } },
      { id: 'call_3', type: 'function', function: { name: 'Edit', arguments: '{"a":' } },
    ],
    function_call: null,
    refusal: null,
  };
  const usage = {
    prompt_tokens: 9,
    completion_tokens: 3,
    total_tokens: 12,
    prompt_tokens_details: null,
  };
  const request = { ...base, messages: [] as Message[] };
  const whole = createMessagesFormat(request).toWhole(
    { choices: [{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }], usage },
    { requestId: '0af1', id: 'chat-0af1', created: 1, model: 'agent', kind: 'chat' },
  );
  assert.deepEqual(whole, {
    id: 'msg_0af1',
    type: 'message',
    role: 'assistant',
    model: 'agent',
    content: [
      { type: 'thinking', thinking: 'Look.', signature: 'msg_0af1' },
      { type: 'text', text: 'I look.' },
      { type: 'tool_use', id: 'call_1', name: 'Bash', input: { a: 1 } },
      { type: 'tool_use', id: 'toolu_msg_0af1_1', name: 'Read', input: {} },
      { type: 'tool_use', id: 'call_3', name: 'Edit', input: { invalid_arguments: '{"a":' } },
    ],
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage: {
      input_tokens: 9,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 3,
    },
  });
});
