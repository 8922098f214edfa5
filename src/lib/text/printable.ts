// Text from elsewhere on a terminal.

/** Replaces control and bidirectional characters, so that a name can't command the terminal. */
export const toPrintable = (text: string) =>
  text.replaceAll(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, '�');
