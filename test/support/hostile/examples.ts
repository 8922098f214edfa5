// One valid body for every route that takes one. Hostile requests are these with a member or two changed:
// noise alone never gets past a closed schema.

import assert from 'node:assert';
import { endpoints } from '#inference/apis/apis.ts';
import { password, type SessionFetch, type TestServer } from '#test/support/server.ts';

export const owner = 'owner@example.com';

export interface World {
  /** Ids of things that exist, for addresses. */
  ids: string[];
  /** Ids of a file and a batch, which have a form of their own. */
  inferenceIds: string[];
  /** The id of a request that has a usage row. */
  requestId: string;
  /** By method and route. */
  examples: Record<string, Record<string, unknown>>;
}

export const repo = 'tests/tiny-gguf';

const rule = {
  protocol: 'tcp',
  port_range: [22, 22],
  source_network: '0.0.0.0/0',
  description: 'ssh',
};

const sampling = {
  model: 'hermes3-8b',
  max_tokens: 2,
  temperature: 0.5,
  top_p: 0.9,
  n: 1,
  stop: ['\n'],
  seed: 1,
  stream: false,
  logit_bias: { 5: -1 },
  presence_penalty: 0,
};

/** The example of each inference endpoint, for a model that exists. */
const exampleBodies = Object.fromEntries(
  endpoints.map(({ url, text }) => [`POST ${url}`, { ...text.body, model: sampling.model }]),
);

const anthropic = {
  model: 'hermes3-8b',
  system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'look', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'Nothing' }] },
  ],
  tools: [{ name: 'look', description: 'Looks.', input_schema: { type: 'object' } }],
  tool_choice: { type: 'auto', disable_parallel_tool_use: true },
  metadata: { user_id: 'ada' },
};

/** A model without a server, which no other example uses. */
const backend = {
  model: 'lfm-40b',
  name: 'spare',
  url: 'http://127.0.0.1:9/v1',
  api_key: 'sk-1',
  upstream_model: 'org/name',
  headers: { 'x-team': 'blue' },
  weight: 1,
  concurrency: 4,
  server: 'vllm',
  timeouts: { connect_ms: 100, first_byte_ms: 100, idle_ms: 100 },
  continue_streams: true,
};

/** A program that ends at once. */
const deployment = {
  engine: 'command',
  program: '/bin/false',
  source: null,
  args: ['--fast'],
  runs_on: 'cpu_1x_general',
  image: 'host',
  setup: 'true',
  env: { TOKEN: 'x' },
  min: 0,
  max: 2,
  target: 4,
  ladder: { gone: 60 },
  start_seconds: 60,
  hold_requests: 1,
  hold_seconds: 1,
  weight: 1,
};

const chatSettings = {
  system: 'Be brief.',
  settings: { temperature: 0.5, stop: null },
  tools: '',
  schema: '',
  logprobs: false,
};
const conversation = {
  name: 'Water',
  content: {
    ...chatSettings,
    models: ['hermes3-8b', 'lfm-40b'],
    turns: [
      { id: '1', role: 'user', text: 'Is water wet?', images: ['data:image/png;base64,AAAA'] },
      { id: '2', role: 'assistant', text: 'Yes.', lane: 0, outcome: { finish: 'stop' } },
    ],
  },
};

const tool = {
  type: 'function',
  function: {
    name: 'look',
    description: 'looks',
    parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
  },
};

/** Makes something of every kind through the API, then knows what a valid request names. */
export async function createWorld(server: TestServer, session: SessionFetch): Promise<World> {
  const post = async <Answer>(call: TestServer['fetch'], path: string, json: unknown) => {
    const response = await call(path, { json });
    const answer = await response.json();
    assert(response.ok, `${path}: ${JSON.stringify(answer)}`);
    return answer as Answer;
  };
  const cloud = async (path: string, json: unknown) =>
    (await post<{ data: { id: string; instance_ids: string[] } }>(server.fetch, path, json)).data;
  const own = (path: string, json: unknown) =>
    post<{ id: string; link: string }>(session, path, json);

  const place = { region: 'us-west-1', name: 'first' };
  const launch = {
    region_name: 'us-west-1',
    instance_type_name: 'cpu_1x_general',
    ssh_key_names: ['first'],
    hostname: 'box',
    name: 'box',
    user_data: '#!/bin/sh\ntrue\n',
    tags: [{ key: 'team', value: 'blue' }],
  };
  const key = await cloud('/api/v1/ssh-keys', { name: 'first' });
  const filesystem = await cloud('/api/v1/filesystems', place);
  const ruleset = await cloud('/api/v1/firewall-rulesets', { ...place, rules: [rule] });
  const instance = (await cloud('/api/v1/instance-operations/launch', launch)).instance_ids[0];
  assert(instance !== undefined);
  const apiKey = await own('/dashboard/api/api-keys', { label: 'spare' });
  const invitation = await own('/dashboard/api/invitations', { role: 'member' });
  const spare = await own('/dashboard/api/invitations', { role: 'viewer' });
  const talk = await own('/dashboard/api/playground/conversations', conversation);
  const share = { method: 'PATCH', json: { shared: true } };
  assert((await session(`/dashboard/api/playground/conversations/${talk.id}`, share)).ok);
  const preset = { name: 'Brief', settings: chatSettings };
  const saved = await session('/dashboard/api/playground/presets', { method: 'PUT', json: preset });
  const { id: presetId } = (await saved.json()) as { id: string };
  const newBatch = await toNewBatch(server);
  const batch = await post<{ id: string }>(server.fetch, '/v1/batches', newBatch);
  const token = invitation.link.split('/').at(-1);
  // High enough to be met by nothing that is tried here.
  const limits = {
    requests_per_minute: 1_000_000,
    tokens_per_minute: 1_000_000_000,
    concurrent_requests: 1_000_000,
    monthly_budget: 1_000_000,
  };
  const listed = { instance_ids: [instance] };
  const { model } = sampling;
  // Its usage row is named by the id of the response.
  const refused = await server.fetch('/v1/chat/completions', {
    json: { model: 'no-such-model', messages: [{ role: 'user', content: 'Hello' }] },
  });
  const requestId = refused.headers.get('x-request-id');
  assert(requestId !== null);

  return {
    ids: [
      key.id,
      filesystem.id,
      ruleset.id,
      instance,
      apiKey.id,
      spare.id,
      talk.id,
      presetId,
      requestId,
    ],
    inferenceIds: [newBatch.input_file_id, batch.id],
    requestId,
    examples: {
      ...exampleBodies,
      'POST /v1/files': { purpose: 'batch' },
      'POST /v1/batches': newBatch,
      'POST /v1/chat/completions': {
        ...sampling,
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
        ],
        tools: [tool],
        tool_choice: 'auto',
        response_format: { type: 'text' },
        stream_options: null,
        logprobs: true,
        top_logprobs: 1,
      },
      'POST /v1/responses': { model, input: 'Hello', max_output_tokens: 4, store: false },
      'POST /v1/responses/input_tokens': { model, input: [{ role: 'user', content: 'Hello' }] },
      'POST /v1/responses/:response_id/cancel': {},
      'POST /v1/batches/:id/cancel': {},
      'POST /v1/completions': { ...sampling, prompt: 'Hello', echo: false, logprobs: 1 },
      'POST /v1/embeddings': { model, input: ['Hello'], encoding_format: 'base64', dimensions: 8 },
      'POST /v1/rerank': { model, query: 'Hello', documents: ['Hi', { text: 'Ho' }], top_n: 1 },
      'POST /rerank': { model, query: 'Hello', documents: ['Hi'], return_documents: true },
      'POST /tokenize': { model, prompt: 'Hello', return_token_strs: true },
      'POST /detokenize': { model, tokens: [1, 2] },
      'POST /v1/detokenize': { model, tokens: [1, 2] },
      'POST /v1/tokenize': { model, prompt: 'Hello', return_token_strs: true },
      'POST /v1/messages': { ...anthropic, max_tokens: 4, stop_sequences: ['END'] },
      'POST /v1/messages/count_tokens': anthropic,
      'POST /api/show': { model: sampling.model },
      'POST /api/v1/ssh-keys': { name: 'second', public_key: null },
      'POST /api/v1/instances/:id': { name: 'other', tags: [{ key: 'team', value: 'red' }] },
      'POST /api/v1/instance-operations/launch': {
        ...launch,
        image: { family: 'lambda-stack-24-04' },
        file_system_names: ['first'],
        file_system_mounts: [{ mount_point: '/data/x', file_system_id: filesystem.id }],
        firewall_rulesets: [{ id: ruleset.id }],
      },
      'POST /api/v1/instance-operations/restart': listed,
      'POST /api/v1/instance-operations/power-cycle': listed,
      'POST /api/v1/instance-operations/terminate': listed,
      'POST /api/v1/filesystems': { ...place, name: 'second' },
      'PUT /api/v1/firewall-rules': { data: [rule] },
      'POST /api/v1/firewall-rulesets': { ...place, name: 'second', rules: [rule] },
      'PATCH /api/v1/firewall-rulesets/global': { rules: [rule] },
      'PATCH /api/v1/firewall-rulesets/:id': { name: 'third', rules: [rule] },
      'POST /api/v1/tickets': { subject: 'Help', description: 'It broke.', type: 'incident' },
      'PATCH /api/v1/tickets/:ticket_id': { status: 'solved', comment: { body: 'Thanks' } },
      'POST /api/v1/tickets/:ticket_id/attachments': { filename: 'a.log', size_bytes: 1 },
      'POST /api/v1/tickets/:ticket_id/attachments/:attachment_id/complete': {},
      'POST /api/v1/fabric': { name: 'ring', region: 'us-west-1' },
      'POST /api/v1/fabric/:id': { name: 'ring' },
      'POST /api/v1/deployments': { name: 'small', model: 'lfm-40b', ...deployment },
      'POST /api/v1/deployments/:name': deployment,
      'POST /api/v1/deployments/:name/rollback': {},
      'POST /api/v1/deployments/:name/stop': {},
      'POST /api/v1/deployments/:name/start': {},
      'POST /peer/v1/deployments/:id/demand': { server: 'a', waiting: 1 },
      'POST /peer/v1/deployments/:id/reset-backoff': {},
      'POST /peer/v1/deployments/:id/replicas/:replica/v1/chat/completions': {},
      'POST /peer/v1/deployments/:id/replicas/:replica/v1/completions': {},
      'POST /peer/v1/deployments/:id/replicas/:replica/v1/embeddings': {},
      'POST /peer/v1/deployments/:id/replicas/:replica/v1/rerank': {},
      'POST /peer/v1/deployments/:id/replicas/:replica/tokenize': {},
      'POST /peer/v1/deployments/:id/replicas/:replica/detokenize': {},
      'POST /peer/v1/deployments/:id/replicas/:replica/apply-template': {},
      'POST /dashboard/api/login': { email: owner, password },
      'POST /dashboard/api/join': { token, email: 'other@example.com', password },
      'POST /dashboard/api/invitations/look': { token },
      'POST /dashboard/api/password-resets': { token, password },
      'POST /dashboard/api/password-resets/look': { token },
      'POST /dashboard/api/password': { current_password: password, new_password: password },
      'POST /dashboard/api/api-keys': {
        label: 'third',
        scopes: ['inference'],
        expires_at: '2999-01-01T00:00:00Z',
        limits,
      },
      'PATCH /dashboard/api/api-keys/:id': { label: 'fourth', limits },
      'PUT /dashboard/api/limits': limits,
      'POST /dashboard/api/playground/conversations': conversation,
      'PATCH /dashboard/api/playground/conversations/:id': {
        name: 'Rain',
        shared: true,
        content: conversation.content,
        revision: 1,
      },
      'PUT /dashboard/api/playground/presets': preset,
      'POST /dashboard/api/hosts': {
        name: 'far',
        region: 'us-west-1',
        url: 'unix:/nonexistent/socket',
        fingerprint: 'ab'.repeat(32),
        target: '@group',
        pool: 'default',
        network: 'br0',
        project: 'default',
        filesystems_path: '/srv/shared',
      },
      'POST /dashboard/api/hosts/:name/check': {},
      'PATCH /dashboard/api/hosts/:name': { draining: false },
      'POST /dashboard/api/images/:host/:name': {
        fingerprint: 'ab'.repeat(32),
        remote: 'images',
        image: 'debian/12',
        recipe: 'small',
      },
      'PUT /dashboard/api/instances/:id/tags': { tags: [{ key: 'team', value: 'green' }] },
      'PATCH /dashboard/api/members/:id': { role: 'member' },
      'POST /dashboard/api/invitations': { role: 'member' },
      'POST /dashboard/api/backends': backend,
      'POST /dashboard/api/backends/check': backend,
      'PATCH /dashboard/api/backends/:model/:name': { draining: true, weight: 2, concurrency: 4 },
      'POST /dashboard/api/backends/:model/stand-in': {},
      // After all that need the session.
      'POST /dashboard/api/logout': {},
      'POST /dashboard/api/weights/pulls': { repo, file: 'tiny-Q4_K_M.gguf' },
    },
  };
}

/** A batch that fails at once, so that it disturbs nothing. */
async function toNewBatch(server: TestServer) {
  const form = new FormData();
  form.append('purpose', 'batch');
  form.append('file', new Blob(['{}']), 'lines.jsonl');
  const response = await server.fetch('/v1/files', { method: 'POST', body: form });
  assert(response.ok);
  const { id } = (await response.json()) as { id: string };
  return {
    input_file_id: id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
    metadata: { job: 'nightly' },
    output_expires_after: { anchor: 'created_at', seconds: 3600 },
  };
}
