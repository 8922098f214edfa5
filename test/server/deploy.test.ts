// A deploy behind a load balancer: the balancer polls /readyz and stops sending to a server that is about to stop,
// while that server still accepts what is sent to it.

import assert from 'node:assert';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { makeFolder, type RunningProcess, serveMillrace } from '#test/support/process.ts';

const key = 'secret_deploy_0123456789abcdef0123456789';

async function serve(noticeSeconds: number): Promise<RunningProcess> {
  const config = join(makeFolder(), 'millrace.yaml');
  writeFileSync(config, `server:\n  drain_notice_seconds: ${noticeSeconds}\n`);
  return serveMillrace(['--config', config], { MILLRACE_API_KEY: key });
}

/** A status, or the code of the error that the connection failed with. */
function send(agent: Agent, url: string): Promise<number | string> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${key}` };
    const sent = request(url, { agent, headers }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
      response.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
    });
    sent.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error')).end();
  });
}

describe('a deploy', () => {
  test('behind a load balancer loses no request', async () => {
    const [old, next] = await Promise.all([serve(3), serve(3)]);
    const agent = new Agent({ keepAlive: true });
    const served = { old: 0, oldInNotice: 0, next: 0 };
    const lost: (number | string)[] = [];
    let isOldReady = true;
    let hasEnded = false;
    void old.ended.then(() => {
      hasEnded = true;
    });

    async function poll(): Promise<void> {
      while (isOldReady) isOldReady = (await send(agent, `${old.url}/readyz`)) === 200;
    }
    async function work(): Promise<void> {
      while (!hasEnded || served.next === 0) {
        const wasReady = isOldReady;
        const status = await send(agent, `${wasReady ? old.url : next.url}/v1/models`);
        if (status !== 200) lost.push(status);
        else if (!wasReady) served.next++;
        else served.old++;
      }
    }
    const working = [poll(), work(), work(), work()];
    // The balancer's pool of connections is in use before the signal.
    await send(agent, `${old.url}/v1/models`);
    old.child.kill('SIGTERM');
    await working[0];
    // A request that was already on its way to the old server.
    if ((await send(agent, `${old.url}/v1/models`)) === 200) served.oldInNotice++;
    await Promise.all(working);
    agent.destroy();
    assert.deepEqual(lost, []);
    assert(served.old > 0 && served.next > 0 && served.oldInNotice === 1, JSON.stringify(served));
    assert.equal((await old.ended).code, 0);
  });

  test('a second SIGTERM during the notice ends at once', async () => {
    const server = await serve(600);
    server.child.kill('SIGTERM');
    while (!server.stderr().includes('Stopping.')) await once(server.child.stderr as never, 'data');
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 1);
  });
});
