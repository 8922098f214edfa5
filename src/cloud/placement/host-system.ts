// What the host calls itself, for the images' descriptions.

import { readFileSync } from 'node:fs';
import { arch, release, type } from 'node:os';

export function readSystemName(): string {
  try {
    const text = readFileSync('/etc/os-release', 'utf8');
    const name = /^PRETTY_NAME="?([^"\n]+)"?$/m.exec(text)?.[1];
    if (name !== undefined) return name;
  } catch {
    // Not Linux, or a very small one.
  }
  return `${type()} ${release()}`;
}

export const readArchitecture = (): 'x86_64' | 'arm64' => (arch() === 'arm64' ? 'arm64' : 'x86_64');
