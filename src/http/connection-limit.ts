// Leaves half of the files that this process may open to the server itself: connections to backends and the database,
// engines, threads and files on disk. Otherwise anyone who opens enough connections would stop all of these.

import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';

export function limitConnections(server: Server): void {
  const maxFiles = findMaxFiles();
  if (maxFiles !== null) server.maxConnections = Math.floor(maxFiles / 2);
}

/** Null if there is no limit, or if it is not known: only Linux has the file. */
function findMaxFiles(): number | null {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}
