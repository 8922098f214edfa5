// Calls the API of deployments as an owner, with an engine for tests.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import type { HandClock } from './clock.ts';
import { makeFolder } from './process.ts';
import type { SessionFetch, TestServer } from './server.ts';
import { until } from './until.ts';

export const deployedModel = 'hermes3-8b';
const engine = join(import.meta.dirname, 'deployed-engine.ts');

/** Settings of a deployment whose engine is `deployed-engine.ts`. */
export const testEngine = {
  model: deployedModel,
  engine: 'command',
  program: process.execPath,
  args: [engine],
};

interface Called<Data> {
  status: number;
  data: Data;
  error?: { message: string };
}

export interface TestDeployments {
  call<Data = DeploymentView>(method: string, path: string, json?: unknown): Promise<Called<Data>>;
  create(name: string, given?: object): Promise<Called<DeploymentView>>;
  show(name: string): Promise<DeploymentView>;
  removeAll(): Promise<void>;
  chat(given?: object, headers?: Record<string, string>): Promise<Response>;
}

/** A folder that passes for the weights of a model. */
export function makeWeights(): string {
  const folder = makeFolder();
  writeFileSync(join(folder, 'config.json'), '{}');
  return folder;
}

/** With the clock of the server, nothing waits for its next look. */
export function openTestDeployments(
  server: TestServer,
  owner: SessionFetch,
  clock?: HandClock,
): TestDeployments {
  const call = async <Data>(method: string, path: string, json?: unknown) => {
    const response = await owner(`/api/v1/deployments${path}`, {
      method,
      headers: { origin: server.url },
      ...(json === undefined ? {} : { json }),
    });
    return {
      status: response.status,
      ...((await response.json()) as Omit<Called<Data>, 'status'>),
    };
  };
  const list = async () => (await call<DeploymentView[]>('GET', '')).data;
  return {
    call,
    create: (name, given = {}) => call('POST', '', { name, ...testEngine, ...given }),
    show: async (name) => (await call<DeploymentView>('GET', `/${name}`)).data,
    async removeAll() {
      for (const { name } of await list()) await call('DELETE', `/${name}`);
      const wait = clock?.until ?? until;
      await wait('all deployments are gone', async () => (await list()).length === 0);
    },
    chat: (given = {}, headers = {}) =>
      server.fetch('/v1/chat/completions', {
        headers,
        json: { model: deployedModel, messages: [{ role: 'user', content: 'Hi' }], ...given },
      }),
  };
}
