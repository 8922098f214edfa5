// Quotes a text for a POSIX shell.

export const shellQuote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
