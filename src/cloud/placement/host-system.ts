// The name of the host's operating system and its architecture, for the descriptions of images.

import { readFileSync } from 'node:fs';
import { arch, release, type } from 'node:os';

export function readSystemName(): string {
  try {
    const text = readFileSync('/etc/os-release', 'utf8');
    const name = /^PRETTY_NAME="?([^"\n]+)"?$/m.exec(text)?.[1];
    if (name !== undefined) return name;
  } catch {
    // Not Linux, or a minimal one without the file.
  }
  return `${type()} ${release()}`;
}

export const readArchitecture = (): 'x86_64' | 'arm64' => (arch() === 'arm64' ? 'arm64' : 'x86_64');
