// Hands a text over as a file, such as the private half of a key.

export function download(name: string, text: string, type = 'application/x-pem-file'): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  // The browser has taken the content over by the time of its next task.
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** What the private half of a key is called once it is downloaded. */
export const toPemName = (keyName: string) => `${keyName.replaceAll(/[^\w.-]+/g, '-')}.pem`;
