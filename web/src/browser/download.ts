// Downloads text as a file, e.g. a private key.

export function download(name: string, text: string, type = 'application/x-pem-file'): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  // By then the browser has read the content.
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Where a private key belongs: `millrace instances ssh` and the ssh commands of the dashboard look there. */
export const toPemPath = (keyName: string) => `~/.ssh/${toPemName(keyName)}`;

/** Moves a downloaded private key there. ssh refuses a key file that other users can read. */
export const toKeepCommand = (keyName: string) =>
  `mkdir -p ~/.ssh && mv ~/Downloads/${toPemName(keyName)} ~/.ssh/ && chmod 600 ${toPemPath(keyName)}`;

/** The file name of a downloaded private key. */
export const toPemName = (keyName: string) => `${keyName.replaceAll(/[^\w.-]+/g, '-')}.pem`;
