// Coding agents as people install them, told to write a file and report it: Codex by the Responses API, Claude Code by
// the Messages API, opencode by chat completions.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type AgentModel, type AgentScript, startAgentModel } from '#test/support/agent-model.ts';
import { makeFolder } from '#test/support/process.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';
import { toAgentCode } from '../../web/src/code-samples/agents.ts';

/** Where the agents of agents/package.json are installed. */
const installed = process.env.MILLRACE_TEST_AGENTS;
function toOptions(agent: Agent) {
  const timeout = 240_000;
  if (installed === undefined)
    return { timeout, skip: 'MILLRACE_TEST_AGENTS is not the folder of the agents' };
  const isThere = existsSync(join(installed, 'node_modules/.bin', agent.name));
  return { timeout, skip: !isThere && `there is no ${agent.name} for ${process.arch}` };
}

interface Agent {
  readonly name: string;
  /** Its tab among the dashboard's code, which starts it here. */
  readonly tab: string;
  /** Added to that code, so that no person is needed. */
  readonly options: string;
  /** The operation of its usage rows. */
  readonly operation: string;
  /** A context window that is too small after two long results. */
  readonly window: number;
}

const agents: Agent[] = [
  {
    name: 'codex',
    tab: 'Codex',
    options: '-c sandbox_mode=danger-full-access exec --skip-git-repo-check "Write a file."',
    operation: 'responses',
    window: 16_000,
  },
  {
    name: 'claude',
    tab: 'Claude Code',
    options: '--allowedTools Bash --print "Write a file."',
    operation: 'messages',
    window: 27_000,
  },
  {
    name: 'opencode',
    tab: 'opencode',
    options: 'run "Write a file."',
    operation: 'chat',
    window: 22_000,
  },
];

async function runAgent(agent: Agent, script: AgentScript, window = 131_072) {
  const model = await startAgentModel(script);
  const server = await startTestServer({
    config: {
      models: {
        catalog: {
          agent: { context_window: window, backends: [{ name: 'agent', url: model.url }] },
        },
      },
    },
  });
  const folder = makeFolder();
  const code = toAgentCode(server.url, 'agent', window)[agent.tab];
  const ended = Promise.withResolvers<{ output: string; code: unknown }>();
  const child = execFile(
    'bash',
    ['-c', `${code} ${agent.options}`],
    {
      cwd: folder,
      timeout: 200_000,
      maxBuffer: 2 ** 26,
      env: {
        PATH: `${join(installed ?? '', 'node_modules/.bin')}:${process.env.PATH}`,
        HOME: folder,
        NO_COLOR: '1',
        MILLRACE_API_KEY: server.key,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        DISABLE_AUTOUPDATER: '1',
      },
    },
    (error, stdout, stderr) =>
      ended.resolve({ output: `${stdout}\n${stderr}`, code: error?.code ?? 0 }),
  );
  child.stdin?.end();
  return { folder, model, server, ...(await ended.promise) };
}

async function readOperations(server: TestServer): Promise<string[]> {
  const owner = await server.join();
  let operations: string[] = [];
  await until('the usage rows are written', async () => {
    const response = await owner('/dashboard/api/usage/requests?limit=50');
    const { data } = (await response.json()) as { data: { operation: string; status: string }[] };
    operations = data.filter(({ status }) => status === 'done').map(({ operation }) => operation);
    return operations.length > 1;
  });
  return operations;
}

const describeRequests = ({ refusals, summaries, requests }: AgentModel) =>
  `${refusals} refusals, ${summaries} summaries, sizes ${requests.map((it) => JSON.stringify(it).length)}`;

for (const agent of agents) {
  const options = toOptions(agent);
  describe(`${agent.name} through Millrace`, options, () => {
    test('writes a file by its shell and reports it', options, async () => {
      const commands = ['printf wheel > report.txt && echo the-mill-turns'];
      const { folder, output, server } = await runAgent(agent, { commands });
      assert(existsSync(join(folder, 'report.txt')), output);
      assert.equal(readFileSync(join(folder, 'report.txt'), 'utf8'), 'wheel');
      assert.match(output, /Done\. [\s\S]*the-mill-turns/);
      const operations = await readOperations(server);
      assert(
        operations.every((operation) => operation === agent.operation),
        `${operations}`,
      );
    });

    test('compacts a conversation that is too long, and goes on', options, async () => {
      const { window } = agent;
      const print = 'head -c 20000 /dev/zero | tr "\\0" x';
      const commands = [print, print, print, 'printf wheel > report.txt && echo the-mill-turns'];
      const { folder, output, model } = await runAgent(agent, { commands, window }, window);
      const facts = `${describeRequests(model)}\n${output.replaceAll(/x{99,}/g, 'x').slice(-4000)}`;
      assert(model.summaries > 0, facts);
      assert(existsSync(join(folder, 'report.txt')), facts);
      assert.match(output, /Done\. /, facts);
    });
  });
}
