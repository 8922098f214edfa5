// An upstream server that stands for the model of a coding agent. It calls the agent's shell tool as often as a test
// says, reports what the last call printed, and summarises the conversation when that is asked for.

import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after } from 'node:test';

interface Message {
  role: string;
  content: string | { text?: string }[] | null;
}

interface AgentRequest {
  messages: Message[];
  tools?: { function: { name: string } }[];
}

export interface AgentModel {
  /** Base URL, including `/v1`. */
  readonly url: string;
  readonly requests: AgentRequest[];
  /** Requests that were refused because they were too long. */
  refusals: number;
  /** Conversations that were summarised. */
  summaries: number;
}

export interface AgentScript {
  /** Commands that the model runs one after the other. */
  readonly commands: readonly string[];
  /** Tokens that a request may have, if four characters are one. */
  readonly window?: number;
}

/** How Codex asks for a summary. */
const asksForSummary = /CONTEXT CHECKPOINT COMPACTION/;

/** The shell tools of the agents, and the argument that takes the command. */
const shells: Record<string, string> = { exec_command: 'cmd', Bash: 'command', bash: 'command' };

const servers: Server[] = [];
after(() => {
  for (const server of servers) server.close().closeAllConnections();
});

export async function startAgentModel({
  commands,
  window = Infinity,
}: AgentScript): Promise<AgentModel> {
  const model = { url: '', requests: [] as AgentRequest[], refusals: 0, summaries: 0 };
  let called = 0;
  let hasRefused = false;
  const server = createServer(async (request, response) => {
    const bytes = await Array.fromAsync(request as AsyncIterable<Buffer>);
    if (!request.url?.endsWith('/chat/completions')) {
      response.setHeader('content-type', 'application/json');
      return response.end(JSON.stringify({ object: 'list', data: [{ id: 'agent' }] }));
    }
    const body = JSON.parse(Buffer.concat(bytes).toString()) as AgentRequest;
    model.requests.push(body);
    const shell = body.tools?.map((tool) => tool.function.name).find((name) => name in shells);
    const tokens = Math.ceil(Buffer.concat(bytes).length / 4);
    if (tokens > window) {
      model.refusals++;
      hasRefused = true;
      return refuse(response, window, tokens);
    }
    const command = commands[called];
    // Agents ask for a summary after a refusal or, if they know the window, in time: opencode without tools.
    const isInTime = called > 0 && shell === undefined;
    const isSummary = hasRefused || isInTime || asksForSummary.test(textOf(body.messages.at(-1)));
    if (isSummary) model.summaries++;
    hasRefused = false;
    if (shell === undefined || isSummary)
      return say(response, tokens, { content: 'Summary: a file was asked for.' });
    if (command === undefined)
      return say(response, tokens, { content: `Done. ${lastResult(body.messages)}` });
    called++;
    const name = shells[shell] ?? '';
    const args = JSON.stringify({
      [name]: command,
      ...(name === 'command' && { description: 'Run' }),
    });
    say(response, tokens, {
      content: null,
      tool_calls: [
        {
          index: 0,
          id: `call_${called}`,
          type: 'function',
          function: { name: shell, arguments: args },
        },
      ],
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  model.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return model;
}

const textOf = (message: Message | undefined): string =>
  typeof message?.content === 'string'
    ? message.content
    : (message?.content ?? []).map(({ text = '' }) => text).join(' ');

const lastResult = (messages: Message[]) =>
  textOf(messages.findLast(({ role }) => role === 'tool')).slice(-200);

/** As vLLM refuses a prompt that is too long. */
function refuse(response: ServerResponse, window: number, tokens: number): void {
  const message = `This model's maximum context length is ${window} tokens. However, your request has ${tokens} input tokens.`;
  response.writeHead(400, { 'content-type': 'application/json' });
  response.end(
    JSON.stringify({ error: { message, type: 'BadRequestError', param: null, code: 400 } }),
  );
}

function say(
  response: ServerResponse,
  prompt_tokens: number,
  delta: Record<string, unknown>,
): void {
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'agent' };
  const send = (event: object) =>
    response.write(`data: ${JSON.stringify({ ...head, ...event })}\n\n`);
  response.setHeader('content-type', 'text/event-stream');
  send({ choices: [{ index: 0, delta: { role: 'assistant', ...delta }, finish_reason: null }] });
  const finish_reason = 'tool_calls' in delta ? 'tool_calls' : 'stop';
  send({ choices: [{ index: 0, delta: {}, finish_reason }] });
  send({
    choices: [],
    usage: { prompt_tokens, completion_tokens: 10, total_tokens: prompt_tokens + 10 },
  });
  response.end('data: [DONE]\n\n');
}
