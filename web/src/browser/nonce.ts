// Styles made while the page runs are only allowed with the nonce that came with it.

export const nonce =
  document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';
