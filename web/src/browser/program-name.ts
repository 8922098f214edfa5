// The program as it is called on the server's computer, such as ./millrace. The server writes it into the page.

export const programName = (): string =>
  document.querySelector<HTMLMetaElement>('meta[name="millrace-program"]')?.content ?? 'millrace';

/** Replaces the program at the beginning of a command, so that it can be pasted. */
export const nameProgram = (command: string) =>
  command.replace(/^millrace /, () => `${programName()} `);
