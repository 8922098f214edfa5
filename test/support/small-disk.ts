// A small file system of its own for a data directory, which a test can fill and empty. Needs root.

import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { skipFor } from './programs.ts';

export interface SmallDisk {
  readonly path: string;
  /** Writes until only this many bytes are free. With 0, until the disk takes nothing more. */
  fill(leaveBytes: number): void;
  /** Deletes what `fill` wrote. */
  empty(): void;
  /** What uses the disk must end before it is gone. */
  beforeUnmount(action: () => Promise<void>): void;
}

/** Why a test that needs a small disk is skipped; false if it runs. */
export const noSmallDisk = findObstacle();

function findObstacle(): string | false {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'mounting a small file system needs Linux and root';
  const folder = mkdtempSync(join(tmpdir(), 'millrace-disk-'));
  const script = 'mount -t tmpfs millrace-test "$0" && umount "$0"';
  const { status, stderr } = spawnSync('sh', ['-c', script, folder], { encoding: 'utf8' });
  rmSync(folder, { recursive: true });
  return status !== 0 && skipFor(`This kernel refuses to mount (${stderr.trim()}).`);
}

/** `memory` is a tmpfs. `ext4` is an image on a loop device, which takes only the blocks that are written. */
export function mountSmallDisk(
  context: TestContext,
  mib: number,
  kind: 'memory' | 'ext4' = 'memory',
): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), 'millrace-disk-'));
  const image = `${path}.img`;
  if (kind === 'ext4') {
    execFileSync('mke2fs', ['-qF', '-t', 'ext4', '-m', '0', image, `${mib}M`]);
    execFileSync('mount', ['-o', 'loop,discard', image, path]);
  } else {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m`, 'millrace-test', path]);
  }
  const actions: (() => Promise<void>)[] = [];
  context.after(async () => {
    for (const action of actions) await action();
    // Detached at once, even if a process that is about to end has a file open.
    execFileSync('umount', ['--lazy', path]);
    rmSync(path, { recursive: true });
    rmSync(image, { force: true });
  });
  const filler = join(path, 'filler');
  return {
    path,
    fill(leaveBytes) {
      const file = openSync(filler, 'a');
      const free = () => statfsSync(path).bavail * statfsSync(path).bsize;
      try {
        while (leaveBytes === 0 || free() > leaveBytes) writeSync(file, Buffer.alloc(4096));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      } finally {
        closeSync(file);
      }
    },
    empty: () => rmSync(filler, { force: true }),
    beforeUnmount: (action) => void actions.push(action),
  };
}
