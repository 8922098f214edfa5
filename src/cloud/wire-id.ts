// Clients may send ids with dashes and in upper case; they are stored without dashes and in lower case.

export const toId = (id: string): string => id.replaceAll('-', '').toLowerCase();
