// What killed servers leave behind on the host, as root: it is removed if it is unused, and a failed removal is
// an error.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import {
  createGroups,
  findControlGroups,
  joinFiles,
  removeGroups,
  removeLeftoverGroups,
} from '#cloud/drivers/sandbox/machine/control-groups.ts';
import { detachNetwork } from '#cloud/drivers/sandbox/network/network.ts';
import { isRoot } from '#test/support/cloud/sandbox-programs.ts';
import { needs } from '#test/support/programs.ts';

const groups = isRoot ? await findControlGroups() : null;
const newId = () => randomBytes(16).toString('hex');

describe('leftovers of killed servers', { skip: !isRoot && 'needs root' }, () => {
  test('old groups without a process are removed; young ones and those in use are kept', {
    skip: groups === null && 'no control groups',
  }, async () => {
    assert(groups);
    const [old, young, used] = [newId(), newId(), newId()];
    const isThere = (id: string) => joinFiles(groups, id).map((file) => existsSync(file));
    for (const id of [old, young, used]) await createGroups(groups, id, { vcpus: 1, memoryGib: 1 });
    const child = spawn('sleep', ['60']);
    try {
      for (const file of joinFiles(groups, used)) await writeFile(file, String(child.pid));
      const longAgo = new Date(Date.now() - 3_600_000);
      for (const file of [old, used].flatMap((id) => joinFiles(groups, id))) {
        await utimes(path.dirname(file), longAgo, longAgo);
      }
      await removeLeftoverGroups(groups);
      assert(!isThere(old).includes(true));
      assert(!isThere(young).includes(false));
      assert(!isThere(used).includes(false));
    } finally {
      child.kill('SIGKILL');
      for (const id of [old, young, used]) await removeGroups(groups, id);
    }
  });

  test('detaching a missing network succeeds, but a failure is reported', {
    skip: needs('ip', 'nft'),
  }, async () => {
    await detachNetwork(newId());
    const { PATH } = process.env;
    process.env.PATH = '/nonexistent';
    try {
      await assert.rejects(detachNetwork(newId()));
    } finally {
      process.env.PATH = PATH;
    }
  });
});
