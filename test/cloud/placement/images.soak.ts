// Images by the CLI, through a real server to real hosts: over the socket and over HTTPS.

import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { buildHostImage, smallImage } from '#cloud/drivers/incus/images/image-recipe.ts';
import type { HostImage } from '#cloud/hosts/schema.ts';
import type { Image, Instance } from '#cloud/schema.ts';
import { createSshClient, type SshClient } from '#test/support/conformance/ssh-client.ts';
import { type Lxd, startLxd } from '#test/support/lxd/lxd.ts';
import { makeToken, noLxd } from '#test/support/lxd/lxd-daemon.ts';
import { makeFolder, runMillrace } from '#test/support/process.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const region = 'us-east-1';

describe('images', { skip: noLxd, timeout: 240_000 }, () => {
  const daemons: Lxd[] = [];
  let server: TestServer;
  let owner: SessionFetch;
  let ssh: SshClient;
  let env: Record<string, string>;
  const run = (...words: string[]) => runMillrace(['images', ...words], { env });
  const list = async () => {
    const { stdout } = await run('list', '--json');
    return (JSON.parse(stdout) as HostImage[]).map(({ host, name }) => `${host} ${name}`).sort();
  };

  before(async () => {
    daemons.push(await startLxd(), await startLxd());
    const [near, far] = daemons as [Lxd, Lxd];
    ssh = createSshClient();
    server = await startTestServer({ config: { cloud: { driver: 'none' } } });
    owner = await server.join();
    for (const [name, daemon, way] of [
      ['near', near, { url: `unix:${near.socket}` }],
      ['far', far, { token: await makeToken(far) }],
    ] as const) {
      const json = { name, region, network: daemon.network, ...way };
      const added = await owner('/dashboard/api/hosts', { json });
      assert.equal(added.status, 200, await added.text());
    }
    const folder = makeFolder();
    mkdirSync(join(folder, '.config', 'millrace'), { recursive: true });
    const session = owner.cookie.replace('millrace_session=', '');
    const saved = join(folder, '.config', 'millrace', 'session.json');
    writeFileSync(saved, JSON.stringify({ url: server.url, session }));
    env = { HOME: folder, MILLRACE_URL: server.url };
    const key = { name: 'k', public_key: ssh.publicKey };
    assert.equal((await server.fetch('/api/v1/ssh-keys', { json: key })).status, 200);
  });
  after(async () => {
    await server?.stop();
    ssh?.close();
    for (const daemon of daemons) await daemon.stop();
  });

  test('the small image is built on the server and imported to every host', async () => {
    const built = await run('build');
    assert.equal(built.code, 0, built.stderr);
    assert.equal(
      built.stdout,
      `Built ${smallImage} and imported it to near.\nBuilt ${smallImage} and imported it to far.\n`,
    );
    assert.deepEqual(await list(), [`far ${smallImage}`, `near ${smallImage}`]);
    const table = await run('list');
    assert.match(
      table.stdout,
      /^NAME +HOST +REGION +ARCHITECTURE +DESCRIPTION\nmillrace-small +near/,
    );
  });

  test('a tarball and a split image are uploaded, offered at once, and boot', async () => {
    const folder = makeFolder();
    const tarball = await buildHostImage(folder, { templates: false });
    const whole = await run('import', tarball, '--alias', 'unified', '--host', 'far');
    assert.equal(whole.code, 0, whole.stderr);
    assert.equal(whole.stdout, 'Imported unified to far.\n');
    assert.match(whole.stderr, /MB/, 'progress is shown');
    const again = await run('import', tarball, '--alias', 'other-name', '--host', 'far');
    assert.equal(again.code, 0, again.stderr);
    assert.equal(again.stderr, '', 'what is there already is not sent again');

    const rootfs = join(folder, 'rootfs.squashfs');
    execFileSync('tar', ['-xf', tarball, '-C', folder]);
    execFileSync('mksquashfs', [join(folder, 'rootfs'), rootfs, '-quiet', '-noD', '-noF']);
    execFileSync('tar', ['-cf', join(folder, 'meta.tar'), '-C', folder, 'metadata.yaml']);
    const split = await run('import', join(folder, 'meta.tar'), rootfs, '--alias', 'split');
    assert.equal(split.code, 0, split.stderr);
    const known = ['far other-name', 'far split', 'far unified', 'near split'];
    for (const one of known) assert((await list()).includes(one), one);
    const files = [join(folder, 'meta.tar'), rootfs].map((file) => readFileSync(file));
    const target = createHash('sha256').update(Buffer.concat(files)).digest('hex');
    const alias = await daemons[0]!.request('GET', '/1.0/images/aliases/split');
    assert.equal((alias as { target: string }).target, target);

    const response = await server.fetch('/api/v1/images');
    const { data } = (await response.json()) as { data: Image[] };
    const image = data.find(({ family, region: at }) => family === 'split' && at.name === region);
    assert(image !== undefined);
    const launched = await server.fetch('/api/v1/instance-operations/launch', {
      json: {
        region_name: region,
        instance_type_name: 'cpu_1x_general',
        ssh_key_names: ['k'],
        hostname: 'from-split',
        image: { id: image.id },
      },
    });
    const { data: made } = (await launched.json()) as { data: { instance_ids: string[] } };
    assert.equal(launched.status, 200, JSON.stringify(made));
    const [id] = made.instance_ids;
    const show = async () => {
      const shown = await server.fetch(`/api/v1/instances/${id}`);
      return ((await shown.json()) as { data: Instance }).data;
    };
    await until('it is active', async () => (await show()).status === 'active', 60_000);
    const { stdout } = await ssh.ssh({ ip: (await show()).ip ?? '', sshPort: 22 }, 'hostname');
    assert.equal(stdout.trim(), 'from-split');
    await server.fetch('/api/v1/instance-operations/terminate', { json: { instance_ids: [id] } });
    await until('it is gone', async () => (await show()).status === 'terminated', 60_000);
  });

  test('an upload is streamed to the host, so its size takes no memory here', async () => {
    const chunk = Buffer.alloc(1024 * 1024);
    const before = process.memoryUsage().rss;
    let most = 0;
    async function* zeros() {
      for (let sent = 0; sent < 400; sent++) {
        most = Math.max(most, process.memoryUsage().rss);
        yield chunk;
      }
    }
    const response = await fetch(`${server.url}/dashboard/api/images/far/junk`, {
      method: 'POST',
      headers: { cookie: owner.cookie, 'content-type': 'application/octet-stream' },
      body: Readable.toWeb(Readable.from(zeros())) as ReadableStream,
      duplex: 'half',
    } as RequestInit);
    assert([400, 409].includes(response.status), `${response.status} ${await response.text()}`);
    const grown = (most - before) / 1024 / 1024;
    assert(grown < 150, `${Math.round(grown)} MiB`);
    assert(!(await list()).some((one) => one.endsWith(' junk')));
  });

  test('an unknown remote, host or file and a missing permission are reported', async () => {
    const remote = await run('import', '--remote', 'moon:debian/12', '--alias', 'x');
    assert.equal(remote.code, 1);
    assert.match(remote.stderr, /^"moon" is none of images, ubuntu/);
    const far = await run('import', '--remote', 'https://127.0.0.1:9:debian/12', '--alias', 'x');
    assert.equal(far.code, 1);
    assert.match(far.stderr, /127\.0\.0\.1:9/, 'the host itself tried, and says so');
    const host = await run('import', '/etc/hostname', '--alias', 'x', '--host', 'nowhere');
    assert.match(host.stderr, /nowhere is not an LXD or Incus host\. Known hosts: near, far\./);
    const file = await run('import', '/nonexistent', '--alias', 'x');
    assert.match(file.stderr, /Can't read \/nonexistent: no such file\./);
    const both = await run('import', '/etc/hostname', '--remote', 'a:b', '--alias', 'x');
    assert.equal(both.code, 2);
    const invited = await owner('/dashboard/api/invitations', { json: { role: 'member' } });
    const { link } = (await invited.json()) as { link: string };
    const member = await server.joinBy(link, 'member@example.com');
    assert.equal((await member('/dashboard/api/images')).status, 200);
    const refused = await member('/dashboard/api/images/near/x', { json: { recipe: 'small' } });
    assert.equal(refused.status, 403);
  });
});
