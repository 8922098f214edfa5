// Requests of the Responses API as chats: what clients play back, every kind of tool, and what is refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toInputItems, toTask } from '#inference/apis/responses/request/to-task.ts';
import type { InputItem, ResponseRequest } from '#inference/apis/responses/schema.ts';
import type { InferenceError } from '#inference/errors.ts';

const unseal = (sealed: string) => (sealed.startsWith('ours:') ? sealed.slice(5) : null);

const translate = (request: Partial<ResponseRequest>) =>
  toTask({ model: 'mill', ...request }, toInputItems(request.input), unseal);

const bodyOf = (request: Partial<ResponseRequest>) => translate(request).task.body;

const user = (content: string): InputItem => ({ type: 'message', role: 'user', content });

test('text and instructions become two messages', () => {
  const { task } = translate({ input: 'Hello', instructions: 'Be short.', prompt_cache_key: 'c1' });
  assert.deepEqual(task.body.messages, [
    { role: 'system', content: 'Be short.' },
    { role: 'user', content: 'Hello' },
  ]);
  assert.equal(task.fitsMaximum, true);
  assert.equal(task.conversation, 'c1');
});

test('instructions with an image stay apart from those with text', () => {
  const image = { type: 'input_image', image_url: 'data:image/png;base64,AA==' };
  const system = (content: unknown) => ({ type: 'message', role: 'system', content }) as InputItem;
  const { messages } = bodyOf({ input: [system([image]), system('Be short.'), user('Hello')] });
  assert.equal(messages[1]?.content, 'Be short.');
});

test('an empty input is a message to answer', () => {
  assert.deepEqual(bodyOf({ max_output_tokens: 1 }), {
    model: 'mill',
    messages: [{ role: 'user', content: '' }],
    max_completion_tokens: 1,
  });
});

test('leading instructions are one message, and later ones stay in their place', () => {
  const developer = (...texts: string[]): InputItem => ({
    type: 'message',
    role: 'developer',
    content: texts.map((text) => ({ type: 'input_text', text })),
  });
  const { messages } = bodyOf({
    instructions: 'One.',
    input: [developer('Two.', 'Three.'), user('Hi'), developer('Four.')],
  });
  assert.deepEqual(messages, [
    { role: 'system', content: 'One.\n\nTwo.\n\nThree.' },
    { role: 'user', content: 'Hi' },
    { role: 'system', content: 'Four.' },
  ]);
});

test('thoughts, text and calls of one turn are one message', () => {
  const { messages } = bodyOf({
    input: [
      user('Fix it'),
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'ours:I think.' },
      { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'of another server' },
      {
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Looking.' }],
      },
      { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'look', arguments: '{}' },
      { type: 'custom_tool_call', call_id: 'c2', name: 'patch', input: 'a "b"' },
      {
        type: 'local_shell_call',
        id: 'lsh_1',
        call_id: 'c3',
        action: { type: 'exec', command: ['ls'] },
      },
      { type: 'function_call_output', call_id: 'c1', output: 'found' },
      {
        type: 'custom_tool_call_output',
        call_id: 'c2',
        output: [
          { type: 'input_text', text: 'one' },
          { type: 'input_image', image_url: 'data:image/png;base64,AA==' },
          { type: 'input_text', text: 'two' },
        ],
      },
      { type: 'local_shell_call_output', id: 'lsh_1', output: 'files' },
      user('Go on'),
    ],
  });
  const call = (id: string, name: string, args: string) => ({
    id,
    type: 'function',
    function: { name, arguments: args },
  });
  assert.deepEqual(messages, [
    { role: 'user', content: 'Fix it' },
    {
      role: 'assistant',
      reasoning_content: 'I think.',
      content: 'Looking.',
      tool_calls: [
        call('c1', 'look', '{}'),
        call('c2', 'patch', '{"input":"a \\"b\\""}'),
        call('c3', 'local_shell', '{"command":["ls"]}'),
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'found' },
    { role: 'tool', tool_call_id: 'c2', content: 'one\ntwo' },
    { role: 'tool', tool_call_id: 'c3', content: 'files' },
    {
      role: 'user',
      content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }],
    },
    { role: 'user', content: 'Go on' },
  ]);
});

const tools: NonNullable<ResponseRequest['tools']> = [
  {
    type: 'function',
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object' },
    strict: true,
  },
  {
    type: 'custom',
    name: 'digits',
    format: { type: 'grammar', syntax: 'regex', definition: '\\d+' },
  },
  {
    type: 'custom',
    name: 'patch',
    format: { type: 'grammar', syntax: 'lark', definition: 'start: "a"' },
  },
  {
    type: 'namespace',
    name: 'agents',
    description: 'Agents.',
    tools: [{ type: 'function', name: 'look' }] as never,
  },
  { type: 'web_search' },
  { type: 'local_shell' },
  { type: 'tool_search', execution: 'client' },
];

test('every tool that a client runs is a function, and hosted ones are left out', () => {
  const { task, tools: set } = translate({
    tools,
    tool_choice: 'auto',
    parallel_tool_calls: false,
  });
  const functions = task.body.tools?.map((tool) => tool.function) ?? [];
  assert.deepEqual(
    functions.map(({ name }) => name),
    ['look', 'digits', 'patch', 'agents__look', 'local_shell', 'tool_search'],
  );
  assert.deepEqual(functions[0], {
    description: 'Looks.',
    parameters: { type: 'object' },
    strict: true,
    name: 'look',
  });
  const input = functions[1]?.parameters?.properties as { input: { pattern: string } };
  assert.equal(input.input.pattern, '^(?:\\d+)$');
  assert.match(functions[2]?.description ?? '', /Lark grammar:\nstart: "a"/);
  const patch = functions[2]?.parameters?.properties as { input: { pattern: string } };
  assert.equal(patch.input.pattern, '^(?:a)$');
  assert.equal(task.body.parallel_tool_calls, false);
  assert.deepEqual(set.find('agents__look'), {
    kind: 'function',
    name: 'look',
    namespace: 'agents',
  });
  assert.deepEqual(set.find('unknown'), { kind: 'function', name: 'unknown' });
});

test('a call inside a namespace is played back under its function’s name', () => {
  const { messages } = bodyOf({
    tools,
    input: [
      { type: 'function_call', call_id: 'c1', namespace: 'agents', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'ok' },
    ],
  });
  assert.equal(messages[0]?.tool_calls?.[0]?.function.name, 'agents__look');
});

test('names that functions can’t have are replaced, without a clash', () => {
  const odd = [
    { type: 'function', name: 'a.b' },
    { type: 'function', name: 'x'.repeat(100) },
    { type: 'function', name: 'n__t' },
    { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 't' }] as never },
  ];
  const { task, tools: set } = translate({ tools: odd });
  const names = task.body.tools?.map((tool) => tool.function.name) ?? [];
  assert.equal(new Set(names).size, 4);
  for (const name of names) assert.match(name, /^[a-zA-Z0-9_-]{1,64}$/);
  assert.deepEqual(
    names.map((name) => set.find(name).name),
    ['a.b', 'x'.repeat(100), 'n__t', 't'],
  );
});

test('tools that a search found are callable', () => {
  const { task } = translate({
    tools: [{ type: 'tool_search', execution: 'client' }],
    input: [
      user('Search'),
      { type: 'tool_search_call', call_id: 's1', arguments: { query: 'mail' } },
      {
        type: 'tool_search_output',
        call_id: 's1',
        tools: [{ type: 'function', name: 'send_mail' }],
      },
    ],
  });
  assert.deepEqual(
    task.body.tools?.map((tool) => tool.function.name),
    ['tool_search', 'send_mail'],
  );
  assert.deepEqual(task.body.messages.at(-1), {
    role: 'tool',
    tool_call_id: 's1',
    content: 'Available from now on: send_mail.',
  });
});

test('tool_choice names a function, filters the tools, and is dropped without tools', () => {
  assert.deepEqual(bodyOf({ tools, tool_choice: { type: 'custom', name: 'patch' } }).tool_choice, {
    type: 'function',
    function: { name: 'patch' },
  });
  const allowed = bodyOf({
    tools,
    tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'local_shell' }] },
  });
  assert.deepEqual(
    [allowed.tool_choice, allowed.tools?.map((tool) => tool.function.name)],
    ['required', ['local_shell']],
  );
  const none = bodyOf({
    input: 'Hi',
    tool_choice: 'required',
    parallel_tool_calls: true,
    tools: [],
  });
  assert.deepEqual(none, { model: 'mill', messages: [{ role: 'user', content: 'Hi' }] });
});

test('structured output, effort, verbosity and logprobs reach the engine', () => {
  const schema = { type: 'object' };
  const body = bodyOf({
    input: 'Hi',
    text: { format: { type: 'json_schema', name: 'n', schema, strict: true }, verbosity: 'low' },
    reasoning: { effort: 'high', summary: 'auto' },
    include: ['message.output_text.logprobs'],
    top_logprobs: 2,
  });
  assert.deepEqual(body, {
    model: 'mill',
    messages: [{ role: 'user', content: 'Hi' }],
    response_format: { type: 'json_schema', json_schema: { name: 'n', schema, strict: true } },
    reasoning_effort: 'high',
    verbosity: 'low',
    logprobs: true,
    top_logprobs: 2,
  });
});

test('a compaction of this server is read, and one of another is refused', () => {
  const read = bodyOf({ input: [{ type: 'compaction', encrypted_content: 'ours:All is well.' }] });
  assert.deepEqual(read.messages, [
    { role: 'user', content: 'Summary of the conversation until here:\n\nAll is well.' },
  ]);
});

const refused: [string, Partial<ResponseRequest>, string, RegExp][] = [
  ['a conversation', { conversation: 'conv_1' }, 'conversation', /previous_response_id/],
  ['a stored prompt', { prompt: { id: 'pmpt_1' } }, 'prompt', /stores no prompts/],
  [
    'the address of a file',
    {
      input: [
        {
          type: 'message',
          role: 'user',
          content: [{ type: 'input_file', file_url: 'https://example.com/a.pdf' }],
        },
      ],
    },
    'input[0].content[0].file_url',
    /file_data/,
  ],
  [
    'a compaction of another server',
    { input: [{ type: 'compaction', encrypted_content: 'x' }] },
    'input[0].encrypted_content',
    /not made by this server/,
  ],
  ['a hosted tool', { tools, tool_choice: { type: 'web_search' } }, 'tool_choice', /does not run/],
  [
    'nothing but hosted tools, one of them required',
    { tools: [{ type: 'web_search' }], tool_choice: 'required' },
    'tool_choice',
    /does not run/,
  ],
  [
    'a tool that is not there',
    { tools, tool_choice: { type: 'function', name: 'nope' } },
    'tool_choice',
    /not in tools/,
  ],
  [
    'a call without its id',
    { input: [{ type: 'function_call', name: 'a' }] },
    'input[0].call_id',
    /missing/,
  ],
  ['an unknown item', { input: [{ type: 'dream' }] }, 'input[0].type', /"dream"/],
  ['an item that is not stored', { input: [{ id: 'msg_1' }] }, 'input[0]', /msg_1/],
  [
    'a schema without schema',
    { text: { format: { type: 'json_schema' } } },
    'text.format.schema',
    /missing/,
  ],
  ['long keys of metadata', { metadata: { ['k'.repeat(65)]: 'v' } }, 'metadata', /64/],
  [
    'a required call of a certain form',
    { tools, tool_choice: 'required', text: { format: { type: 'json_object' } } },
    'text.format',
    /exclude/,
  ],
];

for (const [what, request, param, message] of refused) {
  test(`${what} is refused with words`, () => {
    assert.throws(
      () => translate(request),
      (error: InferenceError) => {
        assert.equal(error.status, 400);
        assert.equal(error.param, param);
        assert.match(error.message, message);
        return true;
      },
    );
  });
}

test('few grammars of a request become patterns, since short ones may be long patterns', () => {
  const definition = 'start: a a\na: "x"';
  const format = { type: 'grammar' as const, syntax: 'lark' as const, definition };
  const tools = Array.from({ length: 100 }, (_, at) => ({
    type: 'custom',
    name: `t${at}`,
    format,
  }));
  const texts = bodyOf({ tools }).tools?.map((tool) => JSON.stringify(tool.function)) ?? [];
  assert.equal(texts.filter((text) => text.includes('"pattern"')).length, 32);
  assert(texts.every((text) => text.includes('Lark grammar')));
});
