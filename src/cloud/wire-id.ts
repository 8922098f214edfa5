// Ids may be sent with dashes and in capitals; we keep them without.

export const toId = (id: string): string => id.replaceAll('-', '').toLowerCase();
