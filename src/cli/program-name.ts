// Names this program in hints as the user started it, so that they can be pasted.

import { programName } from '#config/environment.ts';

/** Replaces the program in commands that a sentence quotes, such as `millrace login`. */
export const nameProgram = (text: string) =>
  text.replaceAll(/`(?:\.\/)?millrace /g, () => `\`${programName()} `);
