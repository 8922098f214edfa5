// Where the private half of a generated key is saved, as the dashboard calls its downloads.

export const toPemName = (keyName: string) => `${keyName.replaceAll(/[^\w.-]+/g, '-')}.pem`;
