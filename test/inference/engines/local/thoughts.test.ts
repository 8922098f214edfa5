// What a model on this computer thinks: split from its answer, and read by the model's template.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import {
  createChatOutput,
  createThoughtOutput,
} from '#inference/engines/local/child/output/chat-output.ts';
import {
  createChatTemplate,
  opensThought,
  toChatPrompt,
} from '#inference/engines/local/child/prompt/chat-template.ts';
import type { Vocabulary } from '#inference/engines/local/child/vocabulary.ts';
import type { ChatChoiceDelta } from '#inference/wire/response.ts';
import {
  call,
  chat,
  chatOf,
  collect,
  createBuiltin,
  toMessages,
  weatherTool,
} from '#test/support/builtin.ts';

const engine = createBuiltin();
describe('thoughts of a local model', () => {
  after(() => engine.close());

  function toFormat(gbnf: string) {
    return { type: 'json_schema' as const, json_schema: { name: 'given', schema: { gbnf } } };
  }

  describe('a thought', () => {
    const grammar = 'root ::= "<think>\\nTwo and two\\n</think>\\n\\nFour."';
    const body = { messages: toMessages('2+2?'), response_format: toFormat(grammar) };

    test('is split from the answer and counted, whole and streamed', async () => {
      const { choices, usage } = await chatOf(engine, body);
      assert.equal(choices[0]?.message.reasoning_content, 'Two and two');
      assert.equal(choices[0]?.message.content, 'Four.');
      const thought = usage.completion_tokens_details?.reasoning_tokens ?? 0;
      assert(thought > 0 && thought < usage.completion_tokens, `${thought}`);
      const chunks = await collect(await engine.stream(chat(body), call()));
      const deltas = chunks.flatMap(({ choices }) => choices as ChatChoiceDelta[]);
      const textOf = (name: 'reasoning_content' | 'content') =>
        deltas.map(({ delta }) => delta[name] ?? '').join('');
      assert.equal(textOf('reasoning_content'), 'Two and two');
      assert.equal(textOf('content'), 'Four.');
    });

    test('has no scores, and the answer has its own', async () => {
      const { choices } = await chatOf(engine, { ...body, logprobs: true });
      const scored = choices[0]?.logprobs?.content?.map(({ token }) => token).join('');
      assert.match(scored ?? '', /Four\.$/);
      assert.doesNotMatch(scored ?? '', /Two/);
    });

    test('that mentions a tool call makes none', async () => {
      const called = '<tool_call>{\\"name\\": \\"get_weather\\", \\"arguments\\": {}}</tool_call>';
      const { choices } = await chatOf(engine, {
        ...body,
        tools: [weatherTool],
        response_format: toFormat(`root ::= "<think>${called}</think>Four."`),
      });
      assert.equal(choices[0]?.message.tool_calls, null);
      assert.equal(choices[0]?.message.content, 'Four.');
      assert.match(choices[0]?.message.reasoning_content ?? '', /get_weather/);
    });
  });

  describe('a thought that the template opens', () => {
    const source =
      '{% for m in messages %}{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }};{% endfor %}{% if add_generation_prompt %}{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}{% endif %}';
    const template = createChatTemplate(source, { bos_token: '', eos_token: '' });
    const render = (more: object) =>
      template.render(toChatPrompt({ model: 'm', messages: toMessages('Hi'), ...more }));

    test('is the beginning of the output, up to its closing tag', () => {
      assert.equal(opensThought(render({})), true);
      assert.equal(
        opensThought(render({ chat_template_kwargs: { enable_thinking: false } })),
        false,
      );
      const deltas: ChatChoiceDelta['delta'][] = [];
      const options = { index: 0, logprobs: false, tools: false, lazyGrammar: null };
      const answer = createChatOutput({} as Vocabulary, options, ({ delta }) => deltas.push(delta));
      const output = createThoughtOutput(answer, 'opened', (reasoning_content) =>
        deltas.push({ reasoning_content }),
      );
      output.begin();
      for (const text of ['Two', ' and two\n</th', 'ink>\n', '\nFour', '.']) output.text(text, []);
      output.end('stop', null);
      assert.deepEqual(deltas, [
        { role: 'assistant', content: '' },
        { reasoning_content: 'Two' },
        { reasoning_content: ' and two' },
        { content: 'Four' },
        { content: '.' },
        {},
      ]);
    });

    test('is closed before an output of a fixed form', () => {
      const closed = /;<think>\n\n<\/think>\n\n$/;
      assert.match(render({ response_format: { type: 'json_object' } }), closed);
      assert.match(render({ tools: [weatherTool], tool_choice: 'required' }), closed);
    });

    test('is given back to the template as it was', () => {
      const messages = [
        ...toMessages('Hi'),
        { role: 'assistant', content: 'Four.', reasoning_content: 'Two' },
        ...toMessages('Why?'),
      ];
      assert.match(render({ messages }), /^Hi;<think>Two<\/think>Four\.;Why\?;/);
    });
  });
});
