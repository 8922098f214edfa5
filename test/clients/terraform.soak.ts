// Terraform with a provider for Lambda's cloud, against a server with real machines. `.ci/run` can't install the
// provider: CONTRIBUTING.md says how to run this test.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { noSsh } from '#test/support/cloud/sandbox-fixture.ts';
import { run } from '#test/support/conformance/ssh-client.ts';
import { needs } from '#test/support/programs.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const provider = process.env.MILLRACE_TEST_TERRAFORM_PROVIDER;
const skip =
  (!provider &&
    'MILLRACE_TEST_TERRAFORM_PROVIDER does not name the program of elct9620/lambdalabs') ||
  needs('terraform') ||
  noSsh;

describe('Terraform', { skip, timeout: 240_000 }, () => {
  test('applies and destroys a key, a filesystem and two instances on the first try', async (t) => {
    // With the rate limit: the provider sends requests in parallel and doesn't repeat a refused one.
    const server = await startTestServer({
      config: {
        cloud: { driver: 'sandbox', emulate: true, rate_limit: true, ...(await guideSettings()) },
      },
    });
    // The test's own requests don't count.
    const session = await server.join();
    const folder = await mkdtemp(path.join(tmpdir(), 'millrace-terraform-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const terraform = await prepare(server, folder);

    await terraform('apply', '-auto-approve');
    assert.deepEqual((await list(session, 'instances')).toSorted(), [
      'from-terraform-1',
      'from-terraform-2',
    ]);
    assert.deepEqual(await list(session, 'ssh-keys'), ['from-terraform']);
    assert.deepEqual(await list(session, 'file-systems'), ['from-terraform']);
    // Its exit code is 2 if something would change.
    await terraform('plan', '-detailed-exitcode');
    await terraform('destroy', '-auto-approve');
    for (const noun of ['ssh-keys', 'file-systems']) {
      assert.deepEqual(await list(session, noun), [], noun);
    }
    await until('the machine is removed', async () => {
      return (await list(session, 'instances')).length === 0;
    });
  });
});

/** Writes the configuration and returns a function that runs a command of terraform, which must succeed. */
async function prepare(server: TestServer, folder: string) {
  await symlink(provider ?? '', path.join(folder, 'terraform-provider-lambdalabs'));
  // The override spares a registry and `terraform init`.
  await writeFile(
    path.join(folder, 'cli.tfrc'),
    `provider_installation {
       dev_overrides { "elct9620/lambdalabs" = "${folder}" }
       direct {}
     }`,
  );
  await mkdir(path.join(folder, '.ssh'));
  const key = path.join(folder, '.ssh/id_ed25519');
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'me@laptop', '-f', key]);
  await writeFile(path.join(folder, 'main.tf'), await configuration(server));
  return async (command: string, option: string) => {
    const { code, stdout, stderr } = await run('env', [
      `HOME=${folder}`,
      `TF_CLI_CONFIG_FILE=${path.join(folder, 'cli.tfrc')}`,
      `TF_VAR_millrace_api_key=${server.key}`,
      'CHECKPOINT_DISABLE=1',
      'terraform',
      `-chdir=${folder}`,
      command,
      '-no-color',
      '-input=false',
      option,
    ]);
    assert.equal(code, 0, `terraform ${command}: ${stdout}${stderr}`);
  };
}

/** The bursts that the guide gives for it. */
async function guideSettings(): Promise<Record<string, number>> {
  const guide = await readFile('docs/machines.md', 'utf8');
  const [, written = ''] = /### Terraform.*?```yaml\ncloud:\n(.*?)```/s.exec(guide) ?? [];
  const settings = [...written.matchAll(/^ {2}(\w+): (\d+)$/gm)];
  return Object.fromEntries(settings.map(([, name = '', value]) => [name, Number(value)]));
}

/** The one that the guide gives, with the address of this server. */
async function configuration(server: TestServer): Promise<string> {
  const guide = await readFile('docs/machines.md', 'utf8');
  const [, written = ''] = /```hcl\n(.*?)```/s.exec(guide) ?? [];
  return written.replace('http://127.0.0.1:8080', server.url);
}

async function list(session: SessionFetch, noun: string): Promise<string[]> {
  const response = await session(`/api/v1/${noun}`);
  const { data } = (await response.json()) as { data: { name: string }[] };
  return data.map(({ name }) => name);
}
