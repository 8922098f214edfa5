// The nonce of the page's content security policy. Styles added at run time must carry it.

export const nonce =
  document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';
