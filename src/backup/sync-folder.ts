// Makes renames durable: after a power cut a folder that was not synced may have its old entries.

import { closeSync, fsyncSync, openSync } from 'node:fs';

export function syncFolder(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
