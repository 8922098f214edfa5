// How the user starts this program, for hints that can be pasted: `millrace` if npm installed it, and the launcher of the
// clone otherwise, which is not on the search path.

import { fileURLToPath } from 'node:url';

// The sources of a clone are TypeScript; an npm package has only what was built from them.
const isClone = import.meta.url.endsWith('.ts');

export function findProgramName(): string {
  if (!isClone) return 'millrace';
  const folder = fileURLToPath(new URL('../..', import.meta.url));
  return `${process.cwd()}/` === folder ? './millrace' : `${folder}millrace`;
}

/** Replaces the program in commands that a sentence quotes, such as `millrace login`. */
export const nameProgram = (text: string) =>
  text.replaceAll(/`(?:\.\/)?millrace /g, () => `\`${findProgramName()} `);
