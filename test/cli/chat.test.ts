// millrace run and millrace chat: a real server, a scripted upstream behind it, and the CLI in pipes and on a terminal.

import assert from 'node:assert';
import { after, before, describe, test } from 'node:test';
import {
  type ScriptedUpstream,
  type ScriptedUpstreamOptions,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { callMillrace, makeFolder } from '#test/support/process.ts';
import { password, startTestServer, type TestServer } from '#test/support/server.ts';
import { ctrlC, ctrlD, typeMillrace } from '#test/support/terminal.ts';
import { until } from '#test/support/until.ts';

const model = 'hermes3-8b';
const broken = 'hermes3-405b';
const slow = 'dracarys2-72b-instruct';
/** The first of the built-in ids. */
const embed = 'deepseek-coder-v2-lite-instruct';
/** The one that the playground selects, too. */
const preferred = 'llama3.1-8b-instruct';
const said = 'The wheel türnt 水';

describe('millrace run and chat', () => {
  const upstreams: Record<string, ScriptedUpstream> = {};
  let server: TestServer;
  let env: Record<string, string>;

  before(async () => {
    const scripts: Record<string, ScriptedUpstreamOptions> = {
      [model]: { words: 4 },
      [preferred]: { words: 4 },
      [broken]: { behaviour: 'dies-after-first-chunk' },
      [slow]: { words: 4_000, eventDelayMs: 20 },
    };
    for (const [id, script] of Object.entries(scripts))
      upstreams[id] = await startScriptedUpstream(script);
    const catalog = Object.fromEntries(
      Object.entries(upstreams).map(([id, { url }]) => [
        id,
        { continue_streams: false, backends: [{ name: 'box', url, model: 'scripted' }] },
      ]),
    );
    const others = { [embed]: { kind: 'embedding' as const }, rank: { kind: 'rerank' as const } };
    server = await startTestServer({ config: { models: { catalog: { ...catalog, ...others } } } });
    env = {
      HOME: makeFolder(),
      PATH: process.env.PATH ?? '',
      MILLRACE_URL: server.url,
      MILLRACE_API_KEY: server.key,
    };
  });
  after(async () => {
    for (const upstream of Object.values(upstreams)) await upstream.close();
  });

  const run = (words: string[], input = '') => callMillrace(words, { env, input });
  const lastBody = (id = model) => upstreams[id]?.requests.at(-1)?.body;

  test('run prints the answer; the piped text follows the prompt', async () => {
    const { code, stdout, stderr } = await run(
      ['run', 'Translate', '--model', model, '--system', 'Be brief'],
      'une roue\n',
    );
    assert.deepEqual([code, stdout, stderr], [0, `${said}\n`, '']);
    assert.deepEqual(lastBody()?.messages, [
      { role: 'system', content: 'Be brief' },
      { role: 'user', content: 'Translate\n\nune roue\n' },
    ]);
  });

  test('run says what was meant if the prompt is a model', async () => {
    const { code, stderr } = await run(['run', model]);
    assert.equal(code, 2);
    assert.match(
      stderr,
      /hermes3-8b is a model\. .*millrace run -m hermes3-8b .*millrace chat hermes3-8b/,
    );
    assert.equal((await run(['run', 'Hello', '-m', model])).stdout, `${said}\n`);
  });

  test('chat takes a model and a first message in either form', async () => {
    for (const words of [
      ['chat', model, 'Hello'],
      ['chat', '-m', model, 'Hello'],
    ]) {
      const { code, stdout } = await run(words, 'And now?\n');
      assert.deepEqual([code, stdout], [0, `${said}\n${said}\n`]);
      assert.deepEqual(
        lastBody()?.messages?.map(({ content }) => content),
        ['Hello', said, 'And now?'],
      );
    }
    assert.equal((await run(['chat', '-m', model, model, 'Hello'])).code, 2);
  });

  test('run --json has the answer, the backend, the finish reason and the usage', async () => {
    const { stdout } = await run(['run', 'Hello', '--model', model, '--json']);
    const { usage, ...answer } = JSON.parse(stdout);
    assert.deepEqual(answer, {
      model,
      served_by: 'box',
      content: said,
      reasoning: '',
      finish_reason: 'stop',
    });
    assert.equal(usage.completion_tokens, 4);
  });

  test('without a prompt, a known model or a whole answer, run says what is wrong', async () => {
    const none = await run(['run']);
    assert.deepEqual(
      [none.code, none.stderr],
      [2, 'Give a prompt: `./millrace run "Hello"`, or pipe one in.\n'],
    );
    const unknown = await run(['run', 'Hello', '--model', 'nonesuch']);
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /^There is no model nonesuch\. There are: .*hermes3-8b/);
    const typo = await run(['run', 'Hello', '--model', 'hermes-8b']);
    assert.equal(typo.stderr, 'There is no model hermes-8b. Did you mean hermes3-8b?\n');
    const cut = await run(['run', 'Hello', '--model', broken]);
    assert.equal(cut.code, 1);
    assert.match(cut.stderr, /^[A-Z].*\.\n$/);
  });

  test('Ctrl-C cancels a run, and the backend notices', async () => {
    const words = ['run', 'Hello', '--model', slow];
    const { code, screen } = await typeMillrace(env, words, ['wheel', ctrlC]);
    assert.deepEqual([code, screen.includes('Cancelled.')], [130, true], screen);
    await until('the backend is free', () => upstreams[slow]?.requests.at(-1)?.state === 'left');
  });

  test('chat remembers the conversation until /clear, and ends with /exit', async () => {
    const { code, screen } = await typeMillrace(
      env,
      ['chat', model],
      ['> ', 'first\r'],
      [said, ''],
      ['> ', 'second\r'],
      [said, ''],
      ['> ', '/clear\r'],
      ['forgotten', ''],
      ['> ', 'third\r'],
      [said, ''],
      ['> ', '/exit\r'],
    );
    assert.equal(code, 0, screen);
    const sent = upstreams[model]?.requests.slice(-3).map(({ body }) => body.messages);
    const user = (content: string) => ({ role: 'user', content });
    assert.deepEqual(sent, [
      [user('first')],
      [user('first'), { role: 'assistant', content: said }, user('second')],
      [user('third')],
    ]);
  });

  test('in a chat, Ctrl-C cancels the answer; /model refuses an unknown id; Ctrl-D ends it', async () => {
    const { code, screen } = await typeMillrace(
      env,
      ['chat', slow],
      ['> ', 'Hello\r'],
      ['wheel', ctrlC],
      ['Cancelled.', ''],
      ['> ', '/model nonesuch\r'],
      ['There is no model nonesuch', ''],
      ['> ', `/model ${model}\r`],
      [`Now talking to ${model}`, ''],
      ['> ', 'Hello\r'],
      [said, ''],
      ['> ', ctrlD],
    );
    assert.equal(code, 0, screen);
    assert.deepEqual(lastBody()?.messages, [{ role: 'user', content: 'Hello' }]);
    const interrupted = await typeMillrace(env, ['chat', model], ['> ', ctrlC]);
    assert.equal(interrupted.code, 130);
  });

  test('a chat in a pipe is plain text, and ends with an error of the server', async () => {
    const { code, stdout } = await run(['chat', model], 'one\n\ntwo\n');
    assert.deepEqual([code, stdout], [0, `${said}\n${said}\n`]);
    const cut = await run(['chat', broken], 'one\n');
    assert.equal(cut.code, 1);
  });

  test('a model that does not chat is never chosen, and refused if it is named', async () => {
    const listed = await run(['models', 'list', '--json']);
    assert.equal(JSON.parse(listed.stdout)[0].id, embed);
    const chosen = await run(['run', 'Hello', '--json']);
    assert.equal(JSON.parse(chosen.stdout).model, preferred, chosen.stderr);
    const ranked = await run(['run', 'Hello', '--model', 'rank']);
    assert.match(ranked.stderr, /rank ranks documents: send its requests to \/v1\/rerank/);
    const embedded = await run(['chat', embed], 'one\n');
    assert.equal(embedded.code, 1);
    assert.match(embedded.stderr, /instruct does not chat: it computes embeddings/);
  });

  test('without --model a signed-in person gets a model with a healthy backend', async () => {
    const { MILLRACE_API_KEY: _, ...session } = env;
    const login = ['login', '--link', server.setupLink ?? '', '--email', 'me@example.com'];
    await callMillrace(login, { env: session, input: `${password}\n` });
    const { stdout, stderr } = await callMillrace(['run', 'Hello', '--model', model, '--json'], {
      env: session,
    });
    assert.equal(JSON.parse(stdout).served_by, 'box', stderr);
    const backends = await callMillrace(['backends', 'list', '--json'], { env: session });
    const first = (JSON.parse(backends.stdout) as { model: string; kind: string }[]).find(
      ({ kind }) => kind === 'upstream',
    );
    const shown = `${first?.model}. Commands`;
    const chat = await typeMillrace(session, ['chat'], [shown, ''], ['> ', ctrlD]);
    assert.equal(chat.code, 0, chat.screen);
  });
});
