// Work put off to the end of a turn of the event loop: its order, and what becomes of it when some of it throws.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { atTurnEnd } from '#http/client/poll-batch.ts';

const turn = () => new Promise((done) => setImmediate(done));

describe('the end of a turn', () => {
  it('comes for all in their order, and later for those who came during it', async () => {
    const seen: string[] = [];
    atTurnEnd(() => {
      seen.push('first');
      atTurnEnd(() => seen.push('third'));
    });
    atTurnEnd(() => seen.push('second'));
    assert.deepEqual(seen, []);
    await turn();
    assert.deepEqual(seen, ['first', 'second']);
    await turn();
    assert.deepEqual(seen, ['first', 'second', 'third']);
  });

  it('comes for the others when one throws', () => {
    const module = JSON.stringify(
      new URL('../../src/http/client/poll-batch.ts', import.meta.url).href,
    );
    const script = `
      const { atTurnEnd } = await import(${module});
      process.on('uncaughtException', (error) => console.log('thrown', error.message));
      atTurnEnd(() => console.log('first'));
      atTurnEnd(() => { throw new Error('second'); });
      atTurnEnd(() => console.log('third'));
      atTurnEnd(() => console.log('fourth'));`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    assert.deepEqual(stdout.trim().split('\n'), ['first', 'thrown second', 'third', 'fourth']);
  });
});
