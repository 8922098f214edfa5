// Downloads text as a file, e.g. a private key.

export function download(name: string, text: string, type = 'application/x-pem-file'): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  // By then the browser has read the content.
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** The file name of a downloaded private key. */
export const toPemName = (keyName: string) => `${keyName.replaceAll(/[^\w.-]+/g, '-')}.pem`;
