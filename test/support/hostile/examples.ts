// One valid body for every route that takes one. Hostile requests are these with a member or two changed:
// noise alone never gets past a closed schema.

import assert from 'node:assert';
import { password, type SessionFetch, type TestServer } from '#test/support/server.ts';

export const owner = 'owner@example.com';

export interface World {
  /** Ids of things that exist, for addresses. */
  ids: string[];
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
  const token = invitation.link.split('/').at(-1);
  // High enough to be met by nothing that is tried here.
  const limits = {
    requests_per_minute: 1_000_000,
    tokens_per_minute: 1_000_000_000,
    concurrent_requests: 1_000_000,
    monthly_budget: 1_000_000,
  };
  const listed = { instance_ids: [instance] };
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
    requestId,
    examples: {
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
      'POST /v1/completions': { ...sampling, prompt: 'Hello', echo: false, logprobs: 1 },
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
      // After all that need the session.
      'POST /dashboard/api/logout': {},
      'POST /dashboard/api/weights/pulls': { repo, file: 'tiny-Q4_K_M.gguf' },
    },
  };
}
